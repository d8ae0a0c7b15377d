import { read } from "node:fs";
import { promisify } from "node:util";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 64 * 1024;
/** More than any line has: what is longer is not of this daemon's making. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

export interface FileEnd {
  /** The last line that has its end, without that. Undefined: there is none. */
  readonly line: Buffer | undefined;
  /** What follows it: a line that was cut when the machine stopped. */
  readonly torn: Buffer;
}

/** How a file of lines ends. @param size of the file, in bytes. */
export async function readFileEnd(fd: number, size: number): Promise<FileEnd> {
  let end = NOTHING;
  for (let from = size; ; ) {
    const last = end.lastIndexOf(NEWLINE);
    const before = last <= 0 ? -1 : end.lastIndexOf(NEWLINE, last - 1);
    if (before >= 0 || from === 0) {
      return { line: last < 0 ? undefined : end.subarray(before + 1, last), torn: end.subarray(last + 1) };
    }
    if (end.length > MAX_LINE_BYTES) return { line: undefined, torn: NOTHING };
    const length = Math.min(CHUNK_BYTES, from);
    from -= length;
    const chunk = Buffer.alloc(length);
    const { bytesRead } = await promisify(read)(fd, chunk, 0, length, from);
    end = Buffer.concat([chunk.subarray(0, bytesRead), end]);
  }
}
