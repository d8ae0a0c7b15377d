import type { ServerHttp2Stream } from "node:http2";
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../../call.js";
import { quiesce } from "../http2-session.js";
import { MESSAGE_IDLE_TIMEOUT_MS } from "../limits.js";
import { Deframer } from "./deframer.js";
import { type ReadControl, readDirectly } from "./direct-read.js";
import { MessageMemory } from "./message-memory.js";

/** What may wait to be asked for before the caller is told to wait. */
const MAX_WAITING_BYTES = 512 * 1024;
/** What a waiting message costs besides its bytes, which may be none. */
const MESSAGE_OVERHEAD_BYTES = 100;
/** Takes what is not looked at. */
const UNREAD = Buffer.allocUnsafeSlow(64 * 1024);

export interface MessageReaderOptions {
  /** Of one message. */
  readonly maxBytes: number;
  /** The caller sends one message and ends: it is given up when it stops sending, and its end is believed (see RequestBody). */
  readonly sendsOneMessage: boolean;
}

/** The messages of a caller, each decoded when it is asked for. */
export class MessageReader implements AsyncIterableIterator<Message> {
  readonly #stream: ServerHttp2Stream;
  readonly #input: DescMessage;
  readonly #options: MessageReaderOptions;
  readonly #call: Call;
  readonly #signal: AbortSignal;
  readonly #deframer: Deframer;
  readonly #memory = new MessageMemory();
  readonly #isDirect: boolean;
  readonly #control: ReadControl;
  /** What the handler has. */
  #lent: Buffer | undefined;
  #paused = false;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #error: unknown;
  #discarded = false;
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(stream: ServerHttp2Stream, input: DescMessage, call: Call, signal: AbortSignal, options: MessageReaderOptions) {
    this.#stream = stream;
    this.#input = input;
    this.#options = options;
    this.#call = call;
    this.#signal = signal;
    const onMessage = (message: Buffer) => {
      this.#waiting.push(message);
      this.#waitingBytes += message.length + MESSAGE_OVERHEAD_BYTES;
    };
    this.#deframer = new Deframer(options.maxBytes, onMessage, (bytes) => this.#memory.take(bytes));
    const reader = { room: () => this.#room(), arrived: (bytes: number) => this.#arrived(bytes) };
    const direct = options.sendsOneMessage ? undefined : readDirectly(stream, reader);
    this.#isDirect = direct !== undefined;
    this.#control = direct ?? stream;
    if (direct === undefined) stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.once("end", () => {
      this.#ended = true;
      this.wake();
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * @throws the reason of the signal; CANCELLED unless the caller has ended its side itself: a broken upload must never look like a
   * whole one; RESOURCE_EXHAUSTED for a message that is too large; INVALID_ARGUMENT and INTERNAL for what is none.
   */
  async next(): Promise<IteratorResult<Message, undefined>> {
    // Otherwise it may be a part of a buffer of Node's.
    if (this.#lent !== undefined && this.#isDirect && this.#call.reusesMessages) this.#memory.giveBack(this.#lent);
    this.#lent = undefined;
    for (;;) {
      if (this.#signal.aborted) throw this.#signal.reason;
      const bytes = this.#waiting.shift();
      if (bytes !== undefined) {
        this.#lent = bytes;
        this.#waitingBytes -= bytes.length + MESSAGE_OVERHEAD_BYTES;
        if (this.#waitingBytes < MAX_WAITING_BYTES && this.#paused) this.#resume();
        return { done: false, value: this.#decode(bytes) };
      }
      if (this.#error !== undefined) throw this.#error;
      if (this.#discarded) throw new ConnectError("the call has ended", Code.Canceled);
      if (this.#ended) return this.#atEnd();
      await this.#change();
    }
  }

  async return(): Promise<IteratorResult<Message, undefined>> {
    return { done: true, value: undefined };
  }

  /** Lets who waits for the next message look again, at the signal too. */
  wake(): void {
    this.#wake?.();
  }

  /** Lets flow away what still comes. */
  discard(): void {
    this.#discarded = true;
    this.#waiting = [];
    this.wake();
    this.#resume();
  }

  #resume(): void {
    this.#paused = false;
    this.#control.resume();
  }

  get #isUnread(): boolean {
    return this.#discarded || this.#error !== undefined;
  }

  #room(): Buffer {
    return this.#isUnread ? UNREAD : this.#deframer.room();
  }

  #arrived(bytes: number): void {
    this.#count(bytes, () => this.#deframer.fill(bytes));
    if (this.#waiting.length > 0 || this.#error !== undefined) this.wake();
  }

  #take(chunk: Buffer): void {
    this.#count(chunk.length, () => this.#deframer.push(chunk));
    this.wake();
  }

  #count(bytes: number, deframe: () => void): void {
    this.#call.bytesIn += bytes;
    if (this.#isUnread) return;
    try {
      deframe();
    } catch (error) {
      this.#error = error;
    }
    if (this.#waitingBytes < MAX_WAITING_BYTES) return;
    this.#paused = true;
    this.#control.pause();
  }

  #decode(bytes: Buffer): Message {
    try {
      return fromBinary(this.#input, bytes);
    } catch (error) {
      throw new ConnectError(`parse binary: ${(error as Error).message}`, Code.Internal);
    }
  }

  async #atEnd(): Promise<IteratorResult<Message, undefined>> {
    const { session } = this.#stream;
    const isBelieved = this.#options.sendsOneMessage || this.#call.hasArrived;
    if (!isBelieved && !this.#stream.closed && session !== undefined) await quiesce(session);
    // Before the answer only the peer, or the end of the connection, closes a stream.
    if (this.#stream.closed || this.#stream.destroyed || this.#stream.aborted)
      throw new ConnectError("the caller has gone", Code.Canceled);
    if (!this.#deframer.isBetweenMessages) throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
    return { done: true, value: undefined };
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      const giveUp = () => this.#stream.close();
      const timer = this.#options.sendsOneMessage ? setTimeout(giveUp, MESSAGE_IDLE_TIMEOUT_MS) : undefined;
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
