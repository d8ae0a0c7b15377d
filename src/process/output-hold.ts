import type { StreamName } from "./managed-process.js";
import type { LosslessReader } from "./process-record.js";

/**
 * The place of a follower that acknowledges what it has received. The process waits for it, also while it is not connected, for a
 * while: `expired` is called when that is over.
 */
export class OutputHold implements LosslessReader {
  readonly offsets: Map<StreamName, number>;
  readonly #expired: () => void;
  #holdMs: number;
  #connections = 0;
  #expiry: NodeJS.Timeout | undefined;

  constructor(offsets: ReadonlyMap<StreamName, number>, holdMs: number, expired: () => void) {
    this.offsets = new Map(offsets);
    this.#holdMs = holdMs;
    this.#expired = expired;
  }

  /** A stream may be there twice for a moment: the follower notices a broken connection before the daemon does. */
  connect(holdMs: number): void {
    this.#connections++;
    this.#holdMs = holdMs;
    clearTimeout(this.#expiry);
  }

  disconnect(): void {
    this.#connections--;
    this.#expireLater();
  }

  /** Places only move forward: what lies before may have been trimmed. */
  acknowledge(received: ReadonlyMap<StreamName, number>): void {
    for (const [stream, offset] of received) this.offsets.set(stream, Math.max(offset, this.offsets.get(stream) ?? 0));
    this.#expireLater();
  }

  close(): void {
    clearTimeout(this.#expiry);
    this.#connections = Number.POSITIVE_INFINITY;
  }

  #expireLater(): void {
    clearTimeout(this.#expiry);
    if (this.#connections === 0) this.#expiry = setTimeout(this.#expired, this.#holdMs).unref();
  }
}
