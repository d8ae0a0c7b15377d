import { createHash } from "node:crypto";
import { type BigIntStats, close, constants, fstatSync, read } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo, kindOf } from "./entry-info.js";

const CHUNK_BYTES = 256 * 1024;

export interface ReadFileOptions {
  /** First byte; 0 by default. */
  readonly offset?: bigint | undefined;
  /** Bytes at most; to the end of the file by default. */
  readonly length?: bigint | undefined;
  readonly checksum?: boolean;
}

export type ReadFileEvent =
  | { readonly kind: "opened"; readonly entry: EntryInfo }
  /** Valid until the next event is asked for: the buffer is used again. */
  | { readonly kind: "chunk"; readonly chunk: Uint8Array }
  /** `sha256` is empty unless a checksum was asked for. */
  | { readonly kind: "summary"; readonly bytes: bigint; readonly sha256: string };

/**
 * Reads a file: `opened`, chunks, `summary`. Opening never blocks: a FIFO is refused instead of waited for. Reads ahead by one
 * chunk: while the caller sends one buffer, the kernel fills the other.
 * @throws NOT_A_REGULAR_FILE, OFFSET_BEYOND_END, FILE_SHRANK, errno of open(2) and read(2).
 */
export async function* readFile(access: Access, path: string, options: ReadFileOptions = {}): AsyncGenerator<ReadFileEvent> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const fd = withFileRightsOf(access.user, () => access.root.open(path, flags));
  let pending: Promise<Buffer> | undefined;
  try {
    const stats = fstatSync(fd, { bigint: true });
    const { start, end } = rangeOf(path, stats, options);
    yield { kind: "opened", entry: describeEntry(path, stats, access.users) };

    const hash = options.checksum ? createHash("sha256") : undefined;
    const chunkBytes = Math.max(1, Math.min(CHUNK_BYTES, end - start));
    let [filling, sending] = [Buffer.allocUnsafeSlow(chunkBytes), Buffer.allocUnsafeSlow(0)];
    let position = start;
    if (position < end) pending = readAt(fd, filling, position, end);
    while (pending !== undefined) {
      const chunk = await pending;
      pending = undefined;
      if (chunk.length === 0) break;
      position += chunk.length;
      [filling, sending] = [sending.length > 0 ? sending : Buffer.allocUnsafeSlow(Math.min(chunkBytes, end - position)), filling];
      if (position < end) pending = readAt(fd, filling, position, end);
      hash?.update(chunk);
      yield { kind: "chunk", chunk };
    }
    assertWhole(path, fd, start, position, end);
    yield { kind: "summary", bytes: BigInt(position - start), sha256: hash?.digest("hex") ?? "" };
  } catch (error) {
    throw withPath(error, path);
  } finally {
    // The read ahead uses descriptor and buffer until it is done, also when the caller has gone.
    await pending?.catch(() => undefined);
    close(fd, () => undefined);
  }
}

/** Files of /proc and most of /sys claim to be empty and are read to wherever they end. */
function rangeOf(path: string, stats: BigIntStats, options: ReadFileOptions): { start: number; end: number } {
  const kind = kindOf(stats);
  if (kind !== "file") throw new PicodError("NOT_A_REGULAR_FILE", `cannot read ${path}: it is a ${kind}`, { path, kind });
  const start = options.offset ?? 0n;
  const last = stats.size > 0n ? stats.size : BigInt(Number.MAX_SAFE_INTEGER);
  if (start > last) throw beyondEnd(path, start, stats.size);
  const end = options.length === undefined || start + options.length > last ? last : start + options.length;
  return { start: Number(start), end: Number(end) };
}

/** An early end is only right where the kernel's idea of the size was: files of /sys claim to be a page long. */
function assertWhole(path: string, fd: number, start: number, position: number, end: number): void {
  if (position >= end) return;
  const { size } = fstatSync(fd);
  if (end === Number.MAX_SAFE_INTEGER) {
    if (position === start && start > size) throw beyondEnd(path, BigInt(start), BigInt(size));
  } else if (size < end) {
    const message = `file shrank while it was read: ${path}: it ended at byte ${position} instead of ${end}`;
    throw new PicodError("FILE_SHRANK", message, { path });
  }
}

function beyondEnd(path: string, offset: bigint, size: bigint): PicodError {
  return new PicodError("OFFSET_BEYOND_END", `cannot read ${path}: offset ${offset} is beyond its ${size} bytes`, { path });
}

function readAt(fd: number, buffer: Buffer, position: number, end: number): Promise<Buffer> {
  const length = Math.min(buffer.length, end - position);
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, length, position, (error, bytes) => (error ? reject(error) : resolve(buffer.subarray(0, bytes))));
  });
}
