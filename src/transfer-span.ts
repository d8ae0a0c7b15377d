import type { Call } from "./call.js";
import type { Span } from "./trace.js";

/** What moves the content of files, by what the caller does. */
export type Transfer = "received" | "sent";

/** From the first byte of content to the last, as a step of the call's trace: what the call does before and after is not moving bytes. */
export class TransferSpan {
  readonly #call: Call;
  readonly #transfer: Transfer;
  #span: Span | undefined;

  constructor(call: Call, transfer: Transfer) {
    this.#call = call;
    this.#transfer = transfer;
  }

  begin(): void {
    this.#span ??= this.#call.trace.begin("transfer", { "picod.transfer.direction": this.#transfer });
  }

  /** @param failure why it is not whole. */
  end(failure?: string): void {
    if (this.#span === undefined) return;
    const { bytesIn, bytesOut } = this.#call;
    this.#span.set({ "picod.transfer.bytes": this.#transfer === "received" ? bytesIn : bytesOut });
    if (failure !== undefined) this.#span.fail(failure);
    this.#span[Symbol.dispose]();
    this.#span = undefined;
  }

  /** Content that arrives. */
  async *through<T>(chunks: AsyncIterable<T>): AsyncGenerator<T> {
    let isWhole = false;
    try {
      for await (const chunk of chunks) {
        this.begin();
        yield chunk;
      }
      isWhole = true;
    } finally {
      this.end(isWhole ? undefined : "incomplete");
    }
  }
}
