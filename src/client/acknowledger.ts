/** Positions in the output of a process. */
export type Offsets = Record<"stdout" | "stderr" | "pty", bigint>;

/** A word for each piece would cost more than the pieces; the daemon asks for one when the process waits for it. */
const ACKNOWLEDGE_BYTES = 128 * 1024;

/** Tells the daemon what a reader has taken, now and then, one word at a time. */
export class Acknowledger {
  readonly #send: (received: Offsets) => Promise<unknown>;
  #taken: Offsets | undefined;
  #bytes = 0;
  #isSending = false;

  constructor(send: (received: Offsets) => Promise<unknown>) {
    this.#send = send;
  }

  /** The reader has taken a piece of so many bytes and is now there. */
  took(bytes: number, taken: Offsets): void {
    this.#taken = { ...taken };
    this.#bytes += bytes;
    if (this.#bytes >= ACKNOWLEDGE_BYTES) this.#flush();
  }

  /** The daemon has sent a keepalive: it may be waiting for a word. */
  asked(): void {
    if (this.#bytes === 0) return;
    this.#bytes = ACKNOWLEDGE_BYTES;
    this.#flush();
  }

  #flush(): void {
    if (this.#isSending || this.#taken === undefined) return;
    this.#isSending = true;
    this.#bytes = 0;
    // One that is lost is made good by the next, or by where the reader attaches again.
    void this.#send(this.#taken)
      .catch(() => undefined)
      .then(() => {
        this.#isSending = false;
        if (this.#bytes >= ACKNOWLEDGE_BYTES) this.#flush();
      });
  }
}
