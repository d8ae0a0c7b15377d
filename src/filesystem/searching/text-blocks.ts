import { readSync } from "node:fs";

const LF = 0x0a;
export const BLOCK_BYTES = 1024 * 1024;
/** What two parts of a long line have in common: a match within so much is not missed. */
const OVERLAP_BYTES = 64 * 1024;

/** Some whole lines; or a part of one that is longer than a block. */
export interface TextBlock {
  readonly bytes: Buffer;
  /** Of the first byte in the file. */
  readonly offset: number;
  /** It begins where a line does. */
  readonly startsLine: boolean;
  /** It ends where a line does. */
  readonly endsLine: boolean;
}

/** Reads a file through `buffer`, which every block is a part of, up to `size` bytes. @throws errno of read(2). */
export function* readBlocks(fd: number, size: number, buffer: Buffer): Generator<TextBlock, void, void> {
  let [offset, length, startsLine] = [0, 0, true];
  for (;;) {
    const wanted = Math.min(buffer.length - length, size - offset - length);
    const bytes = wanted === 0 ? 0 : readSync(fd, buffer, length, wanted, null);
    length += bytes;
    if (bytes === 0) break;
    if (length < buffer.length) continue;
    const whole = buffer.lastIndexOf(LF, length - 1) + 1;
    yield { bytes: buffer.subarray(0, whole || length), offset, startsLine, endsLine: whole > 0 };
    const kept = whole > 0 ? whole : length - OVERLAP_BYTES;
    buffer.copyWithin(0, kept, length);
    startsLine = whole > 0;
    offset += kept;
    length -= kept;
  }
  if (length > 0) yield { bytes: buffer.subarray(0, length), offset, startsLine, endsLine: true };
}
