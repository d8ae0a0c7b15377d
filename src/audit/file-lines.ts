import { readSync } from "node:fs";
import { MAX_LINE_BYTES } from "./file-end.js";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 1024 * 1024;

export interface FileLine {
  /** Without its end. */
  readonly bytes: Buffer;
  /** It has an end. What has none, or is longer than any line, is the last that is given. */
  readonly isWhole: boolean;
}

/** From the place of the descriptor on, as bytes: not every change of them would be one of the text. */
export function* linesOf(fd: number): Generator<FileLine> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  while (rest.length <= MAX_LINE_BYTES) {
    const length = readSync(fd, chunk);
    if (length === 0) break;
    let text = Buffer.concat([rest, chunk.subarray(0, length)]);
    for (let end = text.indexOf(NEWLINE); end >= 0; end = text.indexOf(NEWLINE)) {
      yield { bytes: text.subarray(0, end), isWhole: true };
      text = text.subarray(end + 1);
    }
    rest = text;
  }
  if (rest.length > 0) yield { bytes: rest, isWhole: false };
}
