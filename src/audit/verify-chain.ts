import { type Head, type Link, readLink } from "./chain.js";
import { type FileLine, linesOf } from "./file-lines.js";

export interface ChainFile {
  readonly name: string;
  readonly fd: number;
}

export interface BadLine {
  readonly file: string;
  /** Counted from 1 in that file. */
  readonly line: number;
  /** Completes "the line …". */
  readonly why: string;
}

export interface Verdict {
  /** Good ones, up to the first that is not. */
  readonly lines: number;
  /** Number of the first line that is there; what was before it is not known. Undefined: there is none. */
  readonly firstSeq: number | undefined;
  /** The last good line. */
  readonly head: Head | undefined;
  readonly bad: BadLine | undefined;
  /** Of those that were expected, the hashes that no good line has. */
  readonly missing: readonly string[];
}

/** Reads files in the order in which they were written, up to the first line that is not what follows the one before it. */
export function verifyChain(files: readonly ChainFile[], expected: readonly string[]): Verdict {
  const missing = new Set(expected);
  let firstSeq: number | undefined;
  let head: Head | undefined;
  let lines = 0;
  const verdict = (bad?: BadLine): Verdict => ({ lines, firstSeq, head, bad, missing: [...missing] });
  for (const { name, fd } of files) {
    let line = 0;
    for (const fileLine of linesOf(fd)) {
      line++;
      const link = readLink(fileLine.bytes);
      const why = whyBad(fileLine, link, head);
      if (link === undefined || why !== undefined) return verdict({ file: name, line, why: why ?? "" });
      lines++;
      firstSeq ??= link.seq;
      head = { seq: link.seq, hash: link.hash };
      missing.delete(link.hash);
    }
  }
  return verdict();
}

function whyBad({ isWhole }: FileLine, link: Link | undefined, before: Head | undefined): string | undefined {
  if (!isWhole) return "has no end: it was cut, or is being written";
  if (link === undefined) return "is not one of the chain";
  if (!link.isIntact) return "was changed";
  if (before === undefined || (link.prev === before.hash && link.seq === before.seq + 1)) return undefined;
  const missing = link.seq - before.seq - 1;
  if (missing > 0) return `is number ${link.seq} and follows number ${before.seq}: lines between them are missing`;
  if (link.seq === 1) return "begins a chain of its own";
  if (missing < 0) return `is number ${link.seq} and follows number ${before.seq}: it was moved here, or is there twice`;
  return "does not follow from the line before it, which was replaced";
}
