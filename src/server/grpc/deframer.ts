import { Code, ConnectError } from "@connectrpc/connect";

/** Flags and length, before every message. */
export const PREFIX_BYTES = 5;
const COMPRESSED = 0b1;

/** Cuts what arrives into messages. One that arrives in one piece is not copied. */
export class Deframer {
  readonly #maxBytes: number;
  readonly #onMessage: (bytes: Buffer) => void;
  readonly #allocate: (bytes: number) => Buffer;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  /** Undefined while a prefix is expected. */
  #message: Buffer | undefined;
  #filled = 0;

  constructor(maxBytes: number, onMessage: (bytes: Buffer) => void, allocate: (bytes: number) => Buffer) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
    this.#allocate = allocate;
  }

  /** False when a message, or its prefix, has begun and not ended. */
  get isBetweenMessages(): boolean {
    return this.#message === undefined && this.#filled === 0;
  }

  /** Where the next bytes belong, for those who can put them there themselves. */
  room(): Buffer {
    return (this.#message ?? this.#prefix).subarray(this.#filled);
  }

  /** So much of the room is filled. @throws as `push`. */
  fill(bytes: number): void {
    this.#filled += bytes;
    if (this.#message === undefined) {
      if (this.#filled < PREFIX_BYTES) return;
      this.#message = this.#allocate(this.#lengthInPrefix());
      this.#filled = 0;
    }
    const message = this.#message;
    if (this.#filled < message.length) return;
    this.#message = undefined;
    this.#filled = 0;
    this.#onMessage(message);
  }

  /** @throws RESOURCE_EXHAUSTED for a message that is too large, INTERNAL for a compressed one. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at = this.#takeWhole(chunk, at) ?? this.#copy(chunk, at);
  }

  /** Returns where the message ends that begins there; undefined when it does not, or not all of it is there. */
  #takeWhole(chunk: Buffer, at: number): number | undefined {
    const start = at + PREFIX_BYTES;
    if (!this.isBetweenMessages || chunk.length < start) return undefined;
    chunk.copy(this.#prefix, 0, at);
    const end = start + this.#lengthInPrefix();
    if (end > chunk.length) return undefined;
    this.#onMessage(chunk.subarray(start, end));
    return end;
  }

  /** Returns how far. */
  #copy(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.room(), 0, at);
    this.fill(copied);
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
