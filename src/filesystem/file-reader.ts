import { type BigIntStats, close, closeSync, constants, fstatSync, read, readSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo, etagOf, kindOf } from "./entry-info.js";

const CHUNK_BYTES = 256 * 1024;
/** So much of a file is read at once instead of on a thread: for a small file the way there and back is most of the cost. */
const INLINE_BYTES = 64 * 1024;

/** Bytes from `start` up to, not including, `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * An opened file, of which any parts can be read: all of the same file, whoever replaces it meanwhile. Opening never blocks: a FIFO
 * is refused instead of waited for. `close` in any case, after the last `read` has ended.
 */
export class FileReader {
  readonly entry: EntryInfo;
  /** Undefined where the kernel may not know: files of /proc and most of /sys claim to be empty. */
  readonly size: number | undefined;
  readonly #path: string;
  readonly #fd: number;

  /** @throws NOT_A_REGULAR_FILE, errno of open(2). */
  constructor(access: Access, path: string) {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
    this.#path = path;
    this.#fd = withFileRightsOf(access, () => access.root.open(path, flags));
    try {
      const stats = fstatSync(this.#fd, { bigint: true });
      assertReadable(path, stats);
      this.entry = describeEntry(path, stats, access.users);
      this.size = stats.size > 0n ? Number(stats.size) : undefined;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The part from `offset` on, to the end or `length` bytes. @throws OFFSET_BEYOND_END. */
  span(offset = 0n, length?: bigint): Span {
    const last = BigInt(this.size ?? Number.MAX_SAFE_INTEGER);
    if (offset > last) throw beyondEnd(this.#path, offset, this.entry.size);
    const end = length === undefined || offset + length > last ? last : offset + length;
    return { start: Number(offset), end: Number(end) };
  }

  /** That of `entry`, unless content or attributes have changed since. */
  currentEtag(): string {
    return etagOf(fstatSync(this.#fd, { bigint: true }));
  }

  /**
   * Chunks of at most 256 KiB, each valid until the next is asked for: the buffer is used again. Reads ahead by one: while the caller
   * sends one buffer, the kernel fills the other. @throws FILE_SHRANK, OFFSET_BEYOND_END, errno of read(2).
   */
  async *read({ start, end }: Span): AsyncGenerator<Buffer, void, void> {
    let pending: Promise<Buffer> | undefined;
    try {
      const chunkBytes = Math.max(1, Math.min(CHUNK_BYTES, end - start));
      let [filling, sending] = [Buffer.allocUnsafeSlow(chunkBytes), Buffer.allocUnsafeSlow(0)];
      let position = start;
      const readAt = this.size !== undefined && end - start <= INLINE_BYTES ? readAtOnce : readOnThread;
      if (position < end) pending = readAt(this.#fd, filling, position, end);
      while (pending !== undefined) {
        const chunk = await pending;
        pending = undefined;
        if (chunk.length === 0) break;
        position += chunk.length;
        [filling, sending] = [
          sending.length > 0 ? sending : Buffer.allocUnsafeSlow(Math.min(chunkBytes, end - position)),
          filling,
        ];
        if (position < end) pending = readAt(this.#fd, filling, position, end);
        yield chunk;
      }
      this.#assertWhole(start, position, end);
    } catch (error) {
      throw withPath(error, this.#path);
    } finally {
      // The read ahead uses descriptor and buffer until it is done, also when the caller has gone.
      await pending?.catch(() => undefined);
    }
  }

  close(): void {
    if (this.size !== undefined && this.size <= INLINE_BYTES) closeSync(this.#fd);
    else close(this.#fd, () => undefined);
  }

  /** An early end is only right where the kernel's idea of the size was: files of /sys claim to be a page long. */
  #assertWhole(start: number, position: number, end: number): void {
    if (position >= end) return;
    const { size } = fstatSync(this.#fd);
    if (this.size === undefined || end === Number.MAX_SAFE_INTEGER) {
      if (position === start && start > size) throw beyondEnd(this.#path, BigInt(start), BigInt(size));
    } else if (size < end) {
      const message = `file shrank while it was read: ${this.#path}: it ended at byte ${position} instead of ${end}`;
      throw new PicodError("FILE_SHRANK", message, { path: this.#path });
    }
  }
}

function assertReadable(path: string, stats: BigIntStats): void {
  const kind = kindOf(stats);
  if (kind !== "file") throw new PicodError("NOT_A_REGULAR_FILE", `cannot read ${path}: it is a ${kind}`, { path, kind });
}

function beyondEnd(path: string, offset: bigint, size: bigint): PicodError {
  return new PicodError("OFFSET_BEYOND_END", `cannot read ${path}: offset ${offset} is beyond its ${size} bytes`, { path });
}

async function readAtOnce(fd: number, buffer: Buffer, position: number, end: number): Promise<Buffer> {
  return buffer.subarray(0, readSync(fd, buffer, 0, Math.min(buffer.length, end - position), position));
}

function readOnThread(fd: number, buffer: Buffer, position: number, end: number): Promise<Buffer> {
  const length = Math.min(buffer.length, end - position);
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, length, position, (error, bytes) => (error ? reject(error) : resolve(buffer.subarray(0, bytes))));
  });
}
