import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Call } from "../../call.js";
import type { AnswerHeaders } from "./call-context.js";
import { type EncodedMessage, encodeMessage } from "./encode-message.js";
import { endAtOnce } from "./end-at-once.js";
import { respellGrpcMessage } from "./grpc-message.js";

/** Writes the answer to one call: headers with the first message, messages, trailers. */
export class AnswerWriter {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: OutgoingHttpHeaders;
  readonly #output: DescMessage;
  readonly #call: Call;
  readonly #added: AnswerHeaders;
  #last: EncodedMessage | undefined;
  #closed: (() => void) | undefined;
  /** Nothing waits to go but what has been gathered. */
  #gathersAlone = false;

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
      this.#gather();
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
    // Headers that end the stream are what gRPC takes for trailers; what a handler added to the headers must not get among them.
    if (!stream.headersSent && error !== undefined && !this.#added.hasHeader) {
      stream.respond({ ...this.#headers, ...this.#trailers(error) }, { endStream: true });
      await this.#settled((done) => stream.once("finish", done));
      return;
    }
    if (!stream.headersSent) this.#respond();
    const [head, tail] = this.#last ?? [];
    this.#call.bytesOut += (head?.length ?? 0) + (tail?.length ?? 0);
    const isAlone = stream.writableCorked > 0 ? this.#gathersAlone : stream.writableLength === 0;
    await this.#settled((done) => {
      if (tail !== undefined) {
        stream.cork();
        stream.write(head);
      }
      if (error === undefined && !this.#added.hasTrailer) return endAtOnce(stream, tail ?? head, isAlone, done);
      stream.once("wantTrailers", () => stream.sendTrailers(this.#trailers(error)));
      stream.end(tail ?? head, done);
    });
  }

  #trailers(error: ConnectError | undefined): OutgoingHttpHeaders {
    const status = respellGrpcMessage(setTrailerStatus(new Headers(), error));
    return { ...this.#added.trailerFields, ...Object.fromEntries(status) };
  }

  /** What is written in one go, as the first messages of most streams are, leaves together. */
  #gather(): void {
    const stream = this.#stream;
    if (stream.writableCorked > 0) return;
    this.#gathersAlone = stream.writableLength === 0;
    stream.cork();
    process.nextTick(uncork, stream);
  }

  /** To be called when the stream has closed: nobody takes anything any more. Its last bytes may still be about to leave, in this turn. */
  readonly closed = (): void => {
    if (this.#closed !== undefined) setImmediate(this.#closed);
  };

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

function uncork(stream: ServerHttp2Stream): void {
  stream.uncork();
}
