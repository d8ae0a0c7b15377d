import type { ProcessRecord } from "../../process/process-record.js";

/** A client that takes nothing for so long, while another does, holds the process back no longer. */
const STALL_MS = 5_000;

const subscribersOf = new WeakMap<ProcessRecord, Set<Subscriber>>();

/** One who follows a process among others. A process waits for a slow one, but nobody else has to for long. */
export class Subscriber {
  readonly #others: Set<Subscriber>;
  readonly #letGo = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** On the clock of performance.now(); infinite while its client has everything. */
  #waitsSince = Number.POSITIVE_INFINITY;

  constructor(record: ProcessRecord) {
    this.#others = subscribersOf.get(record) ?? new Set();
    subscribersOf.set(record, this.#others.add(this));
    this.#timer = setInterval(() => this.#look(), STALL_MS).unref();
  }

  /** Aborted when the process waits for it no longer. */
  get letGo(): AbortSignal {
    return this.#letGo.signal;
  }

  /** To be called before a message is handed out, and when the next one is asked for. */
  setWaiting(waits: boolean): void {
    this.#waitsSince = waits ? performance.now() : Number.POSITIVE_INFINITY;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#others.delete(this);
  }

  #look(): void {
    if (this.#stalls() && [...this.#others].some((other) => !other.#stalls())) this.#letGo.abort();
  }

  #stalls(): boolean {
    return performance.now() - this.#waitsSince >= STALL_MS;
  }
}
