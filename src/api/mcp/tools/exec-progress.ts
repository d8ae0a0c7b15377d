import type { Progress } from "./tool.js";

/** So often a caller hears that its command still runs: clients give up on those that say nothing. */
const INTERVAL_MS = 1_000;

/** Tells how long a command has run and how much it has printed, at its start and every second. Use with `using`. */
export class ExecProgress implements Disposable {
  readonly #onProgress: ((progress: Progress) => void) | undefined;
  readonly #timeoutMs: number;
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout | undefined;
  #bytes = 0;

  constructor(onProgress: ((progress: Progress) => void) | undefined, timeoutMs: number) {
    this.#onProgress = onProgress;
    this.#timeoutMs = timeoutMs;
    if (onProgress === undefined) return;
    this.#tell();
    this.#timer = setInterval(() => this.#tell(), INTERVAL_MS);
  }

  printed(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tell(): void {
    const seconds = Math.round((performance.now() - this.#startedAt) / 100) / 10;
    const message = `running for ${seconds} s, ${this.#bytes} bytes of output`;
    this.#onProgress?.({ progress: seconds, total: this.#timeoutMs / 1000, message });
  }
}
