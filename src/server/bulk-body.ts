import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../call.js";
import { duplicate } from "../os/duplicate.js";
import type { HttpRequest } from "./http-types.js";

/** Below, what a body costs is hardly more than its request, and its connection can be used again. */
const MIN_BYTES = 8 * 1024 * 1024;
/** Of each of the two buffers: one is filled while what is in the other is made use of. */
const BUFFER_BYTES = 256 * 1024;

interface Filled {
  readonly buffer: Buffer;
  readonly bytes: number;
}

/** Whether a body is read in bulk: a large one of announced size, in clear, over HTTP/1.1. */
export function isBulk(request: HttpRequest): request is IncomingMessage {
  if (!(request instanceof IncomingMessage) || request.socket instanceof TLSSocket) return false;
  return Number(request.headers["content-length"] ?? 0) >= MIN_BYTES && descriptorOf(request.socket) !== undefined;
}

/**
 * The body of a large upload, read past Node's parser, which makes a buffer of its own for every 64 KiB: collecting that garbage is two
 * thirds of what an upload costs. The bytes come from a second descriptor of the connection into two buffers, so that a piece is valid until
 * the next one is asked for. The parser never sees the end of the request: the connection has to end with the answer.
 */
export class BulkBody implements AsyncIterable<Uint8Array> {
  readonly #request: IncomingMessage;
  readonly #call: Call;
  readonly #buffers = [Buffer.allocUnsafeSlow(BUFFER_BYTES), Buffer.allocUnsafeSlow(BUFFER_BYTES)] as [Buffer, Buffer];
  /** Those that have been filled, in order. */
  readonly #filled: Filled[] = [];
  /** Whoever reads makes use of it. */
  #lent: Buffer | undefined;
  #filling: Buffer = this.#buffers[0];
  #bytes = 0;
  /** What is still to come. */
  #left: number;
  #socket: Socket | undefined;
  #paused = false;
  #broken = false;
  #wake: () => void = () => undefined;

  constructor(request: IncomingMessage, call: Call) {
    this.#request = request;
    this.#call = call;
    this.#left = Number(request.headers["content-length"]);
    // Nobody starts Node's reading of the connection again.
    request._read = () => undefined;
  }

  /** @throws ConnectError CANCELLED when the caller has gone, EMFILE. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* this.#beginning();
      if (this.#left > 0 && !this.#broken) this.#takeOver();
      for (let chunk = await this.#take(); chunk !== undefined; chunk = await this.#take()) yield chunk;
    } finally {
      this.#socket?.destroy();
    }
  }

  /** Nothing more of it is read here: what still comes flows away through Node. */
  discard(): void {
    this.#fail();
    this.#socket?.destroy();
    // The method of the class again.
    Reflect.deleteProperty(this.#request, "_read");
  }

  /** What Node has read along with the head. */
  async *#beginning(): AsyncGenerator<Uint8Array, void, void> {
    // Reading that is about to start cannot be stopped before it has.
    await setImmediate();
    this.#request.socket.pause();
    for (let chunk = this.#request.read(); chunk !== null; chunk = this.#request.read()) {
      this.#left -= chunk.length;
      this.#call.bytesIn += chunk.length;
      yield chunk;
    }
  }

  #takeOver(): void {
    const fd = descriptorOf(this.#request.socket);
    if (fd === undefined) {
      this.#fail();
      return;
    }
    // For Node, a false return stops reading, and the buffer asked for after it is what is read into then.
    const onread = { buffer: () => this.#room(), callback: (bytes: number) => this.#arrived(bytes) };
    this.#socket = new Socket({ fd: duplicate(fd), readable: true, writable: false, onread });
    for (const event of ["error", "end", "close"]) this.#socket.once(event, () => this.#fail());
    // What Node read all the same would be missing here.
    this.#request.once("readable", () => this.#fail());
    this.#socket.resume();
  }

  /** Never more than is left: behind it another request may wait. */
  #room(): Buffer {
    return this.#filling.subarray(this.#bytes, Math.max(this.#bytes + 1, Math.min(BUFFER_BYTES, this.#bytes + this.#left)));
  }

  /** @returns whether to go on reading. */
  #arrived(bytes: number): boolean {
    this.#bytes += bytes;
    this.#left -= bytes;
    this.#call.bytesIn += bytes;
    const isAwaited = this.#lent === undefined && this.#filled.length === 0;
    if (this.#bytes < BUFFER_BYTES && this.#left > 0 && !isAwaited) return true;
    this.#filled.push({ buffer: this.#filling, bytes: this.#bytes });
    this.#filling = this.#filling === this.#buffers[0] ? this.#buffers[1] : this.#buffers[0];
    this.#bytes = 0;
    this.#wake();
    this.#paused = this.#left === 0 || this.#isTaken(this.#filling);
    return !this.#paused;
  }

  #isTaken(buffer: Buffer): boolean {
    return this.#lent === buffer || this.#filled.some((filled) => filled.buffer === buffer);
  }

  /** Gives the last piece back and takes the next; undefined after the last. */
  async #take(): Promise<Uint8Array | undefined> {
    this.#lent = undefined;
    for (;;) {
      const next = this.#filled.shift();
      this.#lent = next?.buffer;
      if (this.#paused && this.#left > 0 && !this.#isTaken(this.#filling)) {
        this.#paused = false;
        this.#socket?.resume();
      }
      if (next !== undefined) return next.buffer.subarray(0, next.bytes);
      if (this.#left === 0) return undefined;
      if (this.#broken) throw new ConnectError("the caller has gone", Code.Canceled);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #fail(): void {
    this.#broken = true;
    this.#wake();
  }
}

/** Node has no public word for it. Undefined when the connection has closed. */
function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}
