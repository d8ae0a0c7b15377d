import { isUtf8 } from "node:buffer";
import { ContextLines, type ContextOptions, cutText } from "./context-lines.js";
import type { LinePattern } from "./line-pattern.js";
import { BLOCK_BYTES, readBlocks, type TextBlock } from "./text-blocks.js";

const LF = 0x0a;
const CR = 0x0d;
/** A NUL byte in so much at the beginning makes a file binary. */
const SNIFFED_BYTES = 8192;
/** So many matches within a line are told. */
const MAX_RANGES = 1000;

export interface LineSearchOptions extends ContextOptions {
  /** Lines to report, in all and of each file; the rest is counted. */
  readonly maxMatches: number;
  readonly maxMatchesPerFile: number;
  readonly countOnly: boolean;
}

/** A line that matches. */
export interface LineMatch {
  /** From 1. */
  readonly lineNumber: number;
  /** Without its line ending; of a long one the surroundings of the first match. */
  readonly line: string;
  /** Of the line's first byte in the file. */
  readonly offset: number;
  /** In bytes of `line`. */
  readonly ranges: readonly (readonly [start: number, end: number])[];
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly truncated: boolean;
}

export interface SearchTotals {
  matchedLines: number;
  matchedFiles: number;
  searchedFiles: number;
  binaryFiles: number;
  searchedBytes: number;
  /** Matches were left out because of a limit. */
  truncated: boolean;
}

/** Searches files line by line, with one buffer for all of them. Synchronous: it belongs on a thread of its own. */
export class LineSearcher {
  readonly totals: SearchTotals = {
    matchedLines: 0,
    matchedFiles: 0,
    searchedFiles: 0,
    binaryFiles: 0,
    searchedBytes: 0,
    truncated: false,
  };
  readonly #pattern: LinePattern;
  readonly #options: LineSearchOptions;
  readonly #buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #reported = 0;

  constructor(pattern: LinePattern, options: LineSearchOptions) {
    this.#pattern = pattern;
    this.#options = options;
  }

  /** Searches a regular file of `size` bytes. A match is yielded once the lines after it are known. @throws errno of read(2). */
  *search(fd: number, size: number): Generator<LineMatch, void, void> {
    const counting = this.#options.countOnly || this.#reported >= this.#options.maxMatches;
    const file = new FileSearch(this.#pattern, this.#options, counting);
    let open: LineMatch | undefined;
    for (const block of readBlocks(fd, size, this.#buffer)) {
      if (block.offset === 0 && block.bytes.subarray(0, SNIFFED_BYTES).includes(0)) {
        this.totals.binaryFiles++;
        return;
      }
      for (const matched of file.linesIn(block)) {
        if (file.matchedLines === 1) this.totals.matchedFiles++;
        this.totals.matchedLines++;
        if (this.#options.countOnly) continue;
        if (this.#reported >= this.#options.maxMatches || file.reported >= this.#options.maxMatchesPerFile) {
          this.totals.truncated = true;
          file.onlyCounts();
          continue;
        }
        this.#reported++;
        if (open !== undefined) yield open;
        open = file.report(matched);
      }
      file.end = block.offset + block.bytes.length;
    }
    if (open !== undefined) yield open;
    this.totals.searchedFiles++;
    this.totals.searchedBytes += file.end;
  }
}

interface MatchedLine {
  /** Valid until the next block. */
  readonly line: Buffer;
  readonly offset: number;
  /** It is not all of the line. */
  readonly isPart: boolean;
}

/** How far the search of one file has come. */
class FileSearch {
  matchedLines = 0;
  reported = 0;
  /** Bytes that were searched. */
  end = 0;
  readonly #pattern: LinePattern;
  readonly #context: ContextLines;
  readonly #maxLineBytes: number;
  #counting: boolean;
  #lineNumber = 1;
  /** Of a line that is longer than a block: where it began, and whether it has matched already. */
  #longLine = { offset: 0, matched: false };

  constructor(pattern: LinePattern, options: LineSearchOptions, counting: boolean) {
    this.#pattern = pattern;
    this.#context = new ContextLines(options);
    this.#maxLineBytes = options.maxLineBytes;
    this.#counting = counting;
  }

  /** From now on neither line numbers nor the lines around matches are needed. */
  onlyCounts(): void {
    this.#counting = true;
  }

  *linesIn({ bytes, offset, startsLine, endsLine }: TextBlock): Generator<MatchedLine, void, void> {
    if (startsLine) this.#longLine = { offset, matched: false };
    // The rest of a long line: of no use to others as context, and no second match.
    const restOfLine = startsLine ? 0 : after(bytes, bytes.indexOf(LF));
    let passed = restOfLine;
    let at = this.#longLine.matched ? restOfLine : 0;
    if (restOfLine > 0 && bytes[restOfLine - 1] === LF) this.#lineNumber++;
    for (let found = this.#pattern.find(bytes, at); found !== undefined; found = this.#pattern.find(bytes, at)) {
      const start = found.start === 0 ? 0 : bytes.lastIndexOf(LF, found.start - 1) + 1;
      const newline = bytes.indexOf(LF, found.start);
      const end = newline < 0 ? bytes.length : newline;
      const content = newline > start && bytes[newline - 1] === CR ? newline - 1 : end;
      if (found.end > content) {
        // It has a carriage return in it that belongs to the line's ending.
        at = found.start + 1;
        continue;
      }
      if (start >= restOfLine) this.#pass(bytes, passed, start);
      this.#longLine.matched = newline < 0;
      this.matchedLines++;
      if (start < restOfLine && newline >= 0) this.#lineNumber--;
      yield {
        line: bytes.subarray(start, content),
        offset: start === 0 ? this.#longLine.offset : offset + start,
        isPart: (start === 0 && !startsLine) || (newline < 0 && !endsLine),
      };
      if (newline >= 0) this.#lineNumber++;
      passed = at = end + 1;
    }
    this.#pass(bytes, Math.min(passed, bytes.length), bytes.length);
  }

  report({ line, offset, isPart }: MatchedLine): LineMatch {
    this.reported++;
    const bytes = isUtf8(line) ? line : Buffer.from(line.toString());
    const ranges = this.#pattern.rangesIn(bytes)[Symbol.iterator]();
    const first = ranges.next().value ?? [0, 0];
    const { start, end } = excerptAround(bytes, first, this.#maxLineBytes);
    const excerpt = cutText(bytes, start, end);
    const from = excerpt.byteOffset - bytes.byteOffset;
    const told: [number, number][] = [];
    for (let range: readonly [number, number] | undefined = first; range !== undefined && told.length < MAX_RANGES; ) {
      if (range[0] >= from + excerpt.length && range !== first) break;
      const clipped = [Math.max(0, range[0] - from), Math.min(excerpt.length, range[1] - from)] as [number, number];
      if (clipped[0] < clipped[1]) told.push(clipped);
      const next = ranges.next();
      range = next.done ? undefined : next.value;
    }
    const truncated = isPart || excerpt.length < bytes.length;
    const context = this.#context.match();
    return { lineNumber: this.#lineNumber, line: excerpt.toString(), offset, ranges: told, ...context, truncated };
  }

  #pass(bytes: Buffer, from: number, to: number): void {
    if (this.#counting || from >= to) return;
    this.#context.pass(bytes, from, to);
    for (let at = bytes.indexOf(LF, from); at >= 0 && at < to; at = bytes.indexOf(LF, at + 1)) this.#lineNumber++;
  }
}

function after(bytes: Buffer, newline: number): number {
  return newline < 0 ? bytes.length : newline + 1;
}

/** Where to cut a long line: the match is in the middle, or at the beginning when it is long itself. */
function excerptAround(line: Buffer, [start, end]: readonly [number, number], maxBytes: number): { start: number; end: number } {
  const margin = Math.max(0, Math.floor((maxBytes - (end - start)) / 2));
  const from = Math.max(0, Math.min(start - margin, line.length - maxBytes));
  return { start: from, end: Math.min(line.length, from + maxBytes) };
}
