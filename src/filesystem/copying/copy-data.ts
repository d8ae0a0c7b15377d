import { type BigIntStats, fstatSync, ftruncate, ftruncateSync, read, readSync, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { PicodError } from "../../errors/picod-error.js";
import { cannotShare, cloneData, copyRange, nextData, seek } from "../../os/file-data.js";
import type { Step } from "../walking/in-steps.js";

/** So much is copied at once instead of on a thread: for a small file the way there and back is most of the cost. */
const INLINE_BYTES = 16 * 1024;
const BUFFER_BYTES = 1024 * 1024;
/** Between two looks at the abort signal. */
const RANGE_BYTES = 8 * 1024 * 1024;
/** What st_blocks counts in. */
const BLOCK_BYTES = 512n;

const small = Buffer.allocUnsafeSlow(INLINE_BYTES);

/** Copies the contents of files, in the cheapest way that they allow, and remembers what they do not. */
export class DataCopier {
  readonly #abortSignal: AbortSignal;
  #clones = true;
  #ranges = true;
  #buffer: Buffer | undefined;

  constructor(abortSignal: AbortSignal) {
    this.#abortSignal = abortSignal;
  }

  /** Copies all of one file into another, empty one; holes stay holes. Resolves with the bytes. @throws FILE_SHRANK, errno of read(2), write(2). */
  *copy(from: number, to: number, stats: BigIntStats): Generator<Step, number, void> {
    const size = Number(stats.size);
    const sparse = stats.blocks * BLOCK_BYTES < stats.size;
    if (size < INLINE_BYTES && !sparse) {
      const bytes = copyNow(from, to, size);
      if (bytes < INLINE_BYTES) return bytes;
      yield () => this.#readAndWrite(from, to, bytes, Number.POSITIVE_INFINITY);
    } else {
      yield () => this.#copyLarge(from, to, size, sparse);
    }
    return Number(fstatSync(to, { bigint: true }).size);
  }

  /** Replaces the content of a file. */
  async overwrite(from: number, to: number): Promise<void> {
    ftruncateSync(to);
    const { size, blocks } = fstatSync(from, { bigint: true });
    await this.#copyLarge(from, to, Number(size), blocks * BLOCK_BYTES < size);
  }

  async #copyLarge(from: number, to: number, size: number, sparse: boolean): Promise<void> {
    if (await this.#clone(from, to)) return;
    if (!sparse) return this.#copyPiece(from, to, 0, size);
    for (let piece = nextData(from, 0, size); piece !== undefined; piece = nextData(from, piece.end, size)) {
      await this.#copyPiece(from, to, piece.start, piece.end);
    }
    // What is gone looks like a hole to whoever asks for the data.
    const { size: left } = fstatSync(from);
    if (left < size) throw new PicodError("FILE_SHRANK", `file shrank while it was copied: it has ${left} of ${size} bytes`);
    const copied = fstatSync(to);
    if (copied.isFile() && copied.size < size) await promisify(ftruncate)(to, size);
  }

  async #clone(from: number, to: number): Promise<boolean> {
    if (!this.#clones) return false;
    try {
      await cloneData(from, to);
      return true;
    } catch (error) {
      // Whatever it is: copying says it again, unless it can be done.
      if (cannotShare(error)) this.#clones = false;
      return false;
    }
  }

  async #copyPiece(from: number, to: number, start: number, end: number): Promise<void> {
    let position = start;
    if (this.#ranges) {
      seek(from, start);
      seek(to, start);
      try {
        for (let bytes = -1; position < end && bytes !== 0; position += bytes) {
          this.#abortSignal.throwIfAborted();
          bytes = await copyRange(from, to, Math.min(RANGE_BYTES, end - position));
        }
      } catch (error) {
        this.#abortSignal.throwIfAborted();
        if (cannotShare(error)) this.#ranges = false;
      }
    }
    await this.#readAndWrite(from, to, position, end);
  }

  async #readAndWrite(from: number, to: number, start: number, end: number): Promise<void> {
    if (start >= end) return;
    this.#buffer ??= Buffer.allocUnsafeSlow(BUFFER_BYTES);
    for (let position = start; position < end; ) {
      this.#abortSignal.throwIfAborted();
      const bytes = await transfer(read, from, this.#buffer, 0, Math.min(BUFFER_BYTES, end - position), position);
      // It has become shorter meanwhile.
      if (bytes === 0) return;
      for (let done = 0; done < bytes; ) done += await transfer(write, to, this.#buffer, done, bytes - done, position + done);
      position += bytes;
    }
  }
}

/** Files of /proc claim to be empty and are read to wherever they end. Stops when it is more than a little. */
function copyNow(from: number, to: number, size: number): number {
  let position = 0;
  for (let bytes = -1; position < INLINE_BYTES && bytes !== 0 && (position < size || size === 0); position += bytes) {
    bytes = readSync(from, small, 0, INLINE_BYTES - position, position);
    for (let done = 0; done < bytes; ) done += writeSync(to, small, done, bytes - done, position + done);
  }
  return position;
}

function transfer(
  call: typeof read | typeof write,
  fd: number,
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    (call as typeof read)(fd, buffer, offset, length, position, (error, bytes) => (error ? reject(error) : resolve(bytes)));
  });
}
