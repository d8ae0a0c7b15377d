import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { INSTANCE_HEADER } from "./instance.js";

/** How often a call is begun again without a sign of life in between. */
const ATTEMPTS = 10;
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 2_000;

/** What the RPC library makes of connections that break. */
const BROKEN: readonly Code[] = [Code.Unavailable, Code.Canceled, Code.Aborted, Code.Unknown, Code.Internal];

/** Waits before a call is begun again, longer each time; throws what cannot be helped by that. */
export class Retries {
  readonly #closed: AbortSignal;
  #failures = 0;

  constructor(closed: AbortSignal) {
    this.#closed = closed;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  async after(error: unknown, alsoFor?: Code): Promise<void> {
    // A process that reads slowly is waited for as long as it takes.
    const isWaitedFor = ConnectError.from(error).code === alsoFor;
    if (!isWaitedFor && (!isBroken(error) || ++this.#failures > ATTEMPTS)) throw error;
    if (!this.#closed.aborted) {
      const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures);
      await sleep(delayMs, undefined, { signal: this.#closed }).catch(() => undefined);
    }
    if (this.#closed.aborted) throw new ConnectError("the client was closed", Code.Canceled);
  }
}

/** Whether the connection failed, or the daemon is about to stop. What else the daemon says of itself is its answer. */
export function isBroken(error: unknown): boolean {
  const { code, metadata } = ConnectError.from(error);
  return code === Code.Unavailable || (BROKEN.includes(code) && !metadata.has(INSTANCE_HEADER));
}
