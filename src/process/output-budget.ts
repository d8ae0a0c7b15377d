import type { OutputLog } from "./output-log.js";

/** Divides an amount of memory among the logs that are being written, so that it holds however many print at once. */
export class OutputBudget {
  readonly #maxBytes: number;
  readonly #maxLogBytes: number;
  readonly #logs = new Set<OutputLog>();
  #shareBytes: number;

  constructor(maxBytes: number, maxLogBytes: number) {
    this.#maxBytes = maxBytes;
    this.#maxLogBytes = maxLogBytes;
    this.#shareBytes = maxLogBytes;
  }

  /** What each log may keep at this moment. */
  get shareBytes(): number {
    return this.#shareBytes;
  }

  /** To be called with a log that gets its first bytes. */
  join(log: OutputLog): void {
    this.#logs.add(log);
    this.#divide();
    log.setLimit(this.#shareBytes);
  }

  /** To be called with a log that will get no more. */
  leave(log: OutputLog): void {
    if (this.#logs.delete(log)) this.#divide();
  }

  /** By powers of two: a share that changed with every process would have all logs copied each time. */
  #divide(): void {
    const fair = this.#maxBytes / Math.max(1, this.#logs.size);
    const share = Math.min(this.#maxLogBytes, 2 ** Math.floor(Math.log2(fair)));
    if (share === this.#shareBytes) return;
    this.#shareBytes = share;
    for (const log of this.#logs) log.setLimit(share);
  }
}
