import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Call } from "../../call.js";
import type { AnswerHeaders } from "./call-context.js";
import { type EncodedMessage, encodeMessage } from "./encode-message.js";
import { respellGrpcMessage } from "./grpc-message.js";

const OK = { "grpc-status": "0" };

/** Writes the answer to one call: headers with the first message, messages, trailers. */
export class AnswerWriter {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: OutgoingHttpHeaders;
  readonly #output: DescMessage;
  readonly #call: Call;
  readonly #added: AnswerHeaders;
  #last: EncodedMessage | undefined;
  #closed: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders, output: DescMessage, call: Call, added: AnswerHeaders) {
    this.#stream = stream;
    this.#headers = headers;
    this.#output = output;
    this.#call = call;
    this.#added = added;
  }

  /** Resolves when the next one may be written and the memory of this one used again, or when nobody takes it any more. */
  async write(message: object): Promise<void> {
    const stream = this.#stream;
    const [head, tail] = encodeMessage(this.#output, message);
    if (stream.destroyed || stream.closed) return;
    if (!stream.headersSent) this.#respond();
    this.#call.bytesOut += head.length + (tail?.length ?? 0);
    if (tail === undefined) {
      if (!stream.write(head)) await this.#settled((done) => stream.once("drain", done));
      return;
    }
    await this.#settled((done) => {
      stream.cork();
      stream.write(head);
      stream.write(tail, done);
      stream.uncork();
    });
  }

  /** Encodes the last message, which leaves together with the end. */
  prepareLast(message: object): void {
    this.#last = encodeMessage(this.#output, message);
  }

  /** Ends the answer with the status of an error, or with success, and resolves when it has left. */
  async end(error?: ConnectError): Promise<void> {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    const status = error === undefined ? OK : Object.fromEntries(respellGrpcMessage(setTrailerStatus(new Headers(), error)));
    const trailers = { ...this.#added.trailerFields, ...status };
    // Headers that end the stream are what gRPC takes for trailers; what a handler added to the headers must not get among them.
    if (!stream.headersSent && error !== undefined && !this.#added.hasHeader) {
      stream.respond({ ...this.#headers, ...trailers }, { endStream: true });
      await this.#settled((done) => stream.once("finish", done));
      return;
    }
    if (!stream.headersSent) this.#respond();
    stream.once("wantTrailers", () => stream.sendTrailers(trailers));
    const [head, tail] = this.#last ?? [];
    this.#call.bytesOut += (head?.length ?? 0) + (tail?.length ?? 0);
    await this.#settled((done) => {
      if (tail !== undefined) {
        stream.cork();
        stream.write(head);
      }
      stream.end(tail ?? head, done);
    });
  }

  /** To be called when the stream has closed: nobody takes anything any more. */
  readonly closed = (): void => this.#closed?.();

  #respond(): void {
    this.#stream.respond({ ...this.#headers, ...this.#added.headerFields }, { waitForTrailers: true });
  }

  /** Resolves when `wait` does, or when the stream has closed. */
  #settled(wait: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      this.#closed = resolve;
      wait(resolve);
    });
  }
}
