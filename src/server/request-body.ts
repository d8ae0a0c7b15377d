import type { ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../call.js";
import { BulkBody, isBulk } from "./bulk-body.js";
import type { HttpRequest } from "./http-types.js";
import { quiesce } from "./http2-session.js";

export interface RequestBodyOptions {
  /** A body that stops arriving for so long counts as broken. */
  readonly maxIdleMs?: number | undefined;
  /**
   * Makes sure that the end of an HTTP/2 stream is meant. Node's client, told to cancel, ends the stream before it resets it, in two
   * packets, and an upload that was given up would be taken for a whole one.
   */
  readonly confirmEnd: boolean;
  /** Called when somebody begins to read it. */
  readonly onBegin?: (() => void) | undefined;
}

/**
 * The body of a request, in pieces as they arrive. Node's own iterator cannot be used: left early it destroys the connection,
 * and with it the answer, and it takes an HTTP/2 stream that was reset for one that has ended.
 */
export class RequestBody implements AsyncIterableIterator<Uint8Array> {
  readonly #request: HttpRequest;
  readonly #call: Call;
  readonly #options: RequestBodyOptions;
  readonly #wake = () => this.#awaken?.();
  #awaken: (() => void) | undefined;
  #bulk: BulkBody | undefined;
  #begun = false;
  #discarded = false;

  constructor(request: HttpRequest, call: Call, options: RequestBodyOptions) {
    this.#request = request;
    this.#call = call;
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws ConnectError CANCELLED unless the peer has ended its side itself: a broken upload must never look like a whole one. */
  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#begin();
    for (;;) {
      const chunk: Buffer | null = this.#discarded ? null : this.#request.read();
      if (chunk !== null) {
        this.#call.bytesIn += chunk.length;
        return { done: false, value: chunk };
      }
      if (this.#request.readableEnded && (await this.#hasArrivedWhole())) return { done: true, value: undefined };
      if (this.#request.readableEnded || this.#request.destroyed || this.#discarded) {
        throw new ConnectError("the caller has gone", Code.Canceled);
      }
      await this.#change();
    }
  }

  /**
   * All of it past Node's parser, in large pieces, each of which is used again as soon as the next is asked for; undefined where that cannot
   * be, or would be worth nothing. Nothing may have been read of it. The connection ends with the answer.
   */
  inBulk(): AsyncIterable<Uint8Array> | undefined {
    if (this.#begun || this.#discarded || !isBulk(this.#request)) return undefined;
    this.#begun = true;
    this.#bulk = new BulkBody(this.#request, this.#call);
    this.#options.onBegin?.();
    return this.#bulk;
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    return { done: true, value: undefined };
  }

  /** Lets what is left of the body flow away, so that the next request of the connection can be read. */
  discard(): void {
    this.#discarded = true;
    this.#bulk?.discard();
    this.#wake();
    // An HTTP/2 stream that nobody has read from is closed by Node once it is answered.
    if (!this.#begun && this.#request.httpVersionMajor !== 1) return;
    this.#request.off("readable", this.#wake);
    this.#request.resume();
  }

  /** Discards what is left and resolves when it has arrived, or after `maxMs`. */
  discardToEnd(maxMs: number): Promise<void> {
    this.discard();
    const request = this.#request;
    if (request.complete || request.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(done, maxMs);
      request.once("end", done).once("close", done);
    });
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#options.onBegin?.();
    // "close" alone tells of a peer that has gone; an error is always followed by it.
    this.#request.on("readable", this.#wake).on("end", this.#wake).on("close", this.#wake);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const { maxIdleMs } = this.#options;
      const timer = maxIdleMs === undefined ? undefined : setTimeout(() => this.#request.destroy(), maxIdleMs);
      this.#awaken = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Whether the peer has ended its side. `complete` says so of an HTTP/2 stream that was reset, too. */
  async #hasArrivedWhole(): Promise<boolean> {
    const { stream } = this.#request as { stream?: ServerHttp2Stream };
    if (stream === undefined) return this.#request.complete;
    // HTTP/2 takes a stream that ends before its content-length for broken (RFC 9113, section 8.1.1).
    const isBelieved = this.#call.hasArrived || this.#request.headers["content-length"] !== undefined;
    if (this.#options.confirmEnd && !isBelieved && !stream.closed && stream.session !== undefined) await quiesce(stream.session);
    // Before the answer only the peer, or the end of the connection, closes a stream.
    return !stream.closed && !stream.destroyed && !stream.aborted;
  }
}
