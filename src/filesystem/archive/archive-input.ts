import type { Step } from "../walking/in-steps.js";
import { BLOCK_BYTES } from "./tar-block.js";

/** Work on an archive: see inSteps. */
export type UnpackSteps<T = void> = Generator<Step, T, void>;

/** The bytes of an archive as they come. Another chunk is asked for when the last has been used up, so nothing collects. */
export class ArchiveInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #truncated: () => Error;
  #chunk: Buffer = Buffer.alloc(0);
  /** For blocks that come in pieces. */
  readonly #block = Buffer.alloc(BLOCK_BYTES);

  /** `truncated` makes the error for when there are no more chunks. */
  constructor(chunks: AsyncIterator<Uint8Array>, truncated: () => Error) {
    this.#chunks = chunks;
    this.#truncated = truncated;
  }

  /** Bytes that can be had without waiting. */
  get available(): number {
    return this.#chunk.length;
  }

  /** Waits until there are bytes. */
  readonly more = async (): Promise<void> => {
    const { done, value } = await this.#chunks.next();
    if (done) throw this.#truncated();
    this.#chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  };

  /** Up to that many of the available bytes. */
  take(max: number): Buffer {
    const taken = this.#chunk.subarray(0, max);
    this.#chunk = this.#chunk.subarray(taken.length);
    return taken;
  }

  /** A whole block; valid until the next. */
  *block(): UnpackSteps<Buffer> {
    if (this.available >= BLOCK_BYTES) return this.take(BLOCK_BYTES);
    return yield* this.fill(this.#block);
  }

  *fill(buffer: Buffer): UnpackSteps<Buffer> {
    for (let at = 0; at < buffer.length; ) {
      if (this.available === 0) yield this.more;
      const taken = this.take(buffer.length - at);
      buffer.set(taken, at);
      at += taken.length;
    }
    return buffer;
  }

  *skip(bytes: number): UnpackSteps {
    for (let left = bytes; left > 0; ) {
      if (this.available === 0) yield this.more;
      left -= this.take(left).length;
    }
  }
}
