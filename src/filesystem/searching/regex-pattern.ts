import { isAscii } from "node:buffer";
import { RE2JS, RE2JSException } from "re2js";
import { PicodError } from "../../errors/picod-error.js";
import type { LinePattern } from "./line-pattern.js";

/** So much is asked about at once; most of a file does not match. */
const CHUNK_BYTES = 32 * 1024;
const LF = 0x0a;
/** What is about the beginning or the end of a line means another place in text of several lines. */
const BOUND_TO_ONE_LINE = /\\[AzZ]|\(\?[a-zA-Z]*-/;

/** @throws INVALID_ARGUMENT that says what is malformed. */
export function compileRegexPattern(pattern: string, regex: boolean, ignoreCase: boolean): RegexPattern {
  const flags = ignoreCase ? RE2JS.CASE_INSENSITIVE : 0;
  const source = regex ? pattern : RE2JS.quote(pattern);
  try {
    const ofLines = BOUND_TO_ONE_LINE.test(source) ? undefined : RE2JS.compile(source, flags | RE2JS.MULTILINE);
    return new RegexPattern(RE2JS.compile(source, flags), ofLines);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw new PicodError("INVALID_ARGUMENT", `invalid pattern: ${pattern}: ${error.message}`, { pattern });
  }
}

/** An expression of RE2: its time is proportional to that of the text, whatever both are. */
class RegexPattern implements LinePattern {
  readonly #ofLine: RE2JS;
  /** Matches text of several lines when one of them matches, and sometimes else. */
  readonly #ofLines: RE2JS | undefined;
  #block: Buffer | undefined;
  /** Up to here in the block, lines are asked about one by one. */
  #closelyUntil = 0;

  constructor(ofLine: RE2JS, ofLines: RE2JS | undefined) {
    this.#ofLine = ofLine;
    this.#ofLines = ofLines;
  }

  find(block: Buffer, from: number) {
    if (this.#block !== block) [this.#block, this.#closelyUntil] = [block, 0];
    let at = from;
    while (at < block.length) {
      if (at >= this.#closelyUntil) {
        const end = chunkEnd(block, at);
        if (this.#ofLines?.test(decode(block.subarray(at, end)).replaceAll("\r\n", "\n")) === false) {
          at = end;
          continue;
        }
        this.#closelyUntil = end;
      }
      const newline = block.indexOf(LF, at);
      const end = newline < 0 ? block.length : newline;
      const line = decode(block.subarray(at, end));
      if (this.#ofLine.test(newline >= 0 && line.endsWith("\r") ? line.slice(0, -1) : line)) return { start: at, end: at };
      at = end + 1;
    }
    return undefined;
  }

  *rangesIn(line: Buffer) {
    const text = decode(line);
    const matcher = this.#ofLine.matcher(text);
    let [index, bytes] = [0, 0];
    const toBytes = (until: number) => {
      bytes += Buffer.byteLength(text.slice(index, until));
      index = until;
      return bytes;
    };
    while (matcher.find()) yield [toBytes(matcher.start()), toBytes(matcher.end())] as const;
  }
}

/** After the last whole line of a chunk; after the first when that is longer. */
function chunkEnd(block: Buffer, from: number): number {
  if (from + CHUNK_BYTES >= block.length) return block.length;
  const last = block.lastIndexOf(LF, from + CHUNK_BYTES - 1);
  const newline = last >= from ? last : block.indexOf(LF, from + CHUNK_BYTES);
  return newline < 0 ? block.length : newline + 1;
}

function decode(bytes: Buffer): string {
  return isAscii(bytes) ? bytes.toString("latin1") : bytes.toString("utf8");
}
