import { Code, ConnectError } from "@connectrpc/connect";

/** Flags and length, before every message. */
export const PREFIX_BYTES = 5;
const COMPRESSED = 0b1;

/** Cuts what arrives into messages. One that arrives in one piece is not copied. */
export class Deframer {
  readonly #maxBytes: number;
  readonly #onMessage: (bytes: Buffer) => void;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  /** Undefined while a prefix is expected. */
  #message: Buffer | undefined;
  #filled = 0;

  constructor(maxBytes: number, onMessage: (bytes: Buffer) => void) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
  }

  /** False when a message, or its prefix, has begun and not ended. */
  get isBetweenMessages(): boolean {
    return this.#message === undefined && this.#filled === 0;
  }

  /** @throws RESOURCE_EXHAUSTED for a message that is too large, INTERNAL for a compressed one. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at = this.#message === undefined ? this.#begin(chunk, at) : this.#fill(chunk, at);
  }

  /** Returns where the prefix ends, or the message when all of it is there. */
  #begin(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.#prefix, this.#filled, at, at + PREFIX_BYTES - this.#filled);
    this.#filled += copied;
    const start = at + copied;
    if (this.#filled < PREFIX_BYTES) return start;
    this.#filled = 0;
    const length = this.#lengthInPrefix();
    if (chunk.length - start >= length) {
      this.#onMessage(chunk.subarray(start, start + length));
      return start + length;
    }
    this.#message = Buffer.allocUnsafe(length);
    return start;
  }

  #fill(chunk: Buffer, at: number): number {
    const message = this.#message as Buffer;
    const copied = chunk.copy(message, this.#filled, at);
    this.#filled += copied;
    if (this.#filled === message.length) {
      this.#message = undefined;
      this.#filled = 0;
      this.#onMessage(message);
    }
    return at + copied;
  }

  #lengthInPrefix(): number {
    const length = this.#prefix.readUInt32BE(1);
    if (length > this.#maxBytes) {
      const message = `message size ${length} is larger than configured readMaxBytes ${this.#maxBytes}`;
      throw new ConnectError(message, Code.ResourceExhausted);
    }
    if (this.#prefix.readUInt8(0) & COMPRESSED) {
      throw new ConnectError("received compressed envelope, but do not know how to decompress", Code.Internal);
    }
    return length;
  }
}
