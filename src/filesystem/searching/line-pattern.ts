import { PicodError } from "../../errors/picod-error.js";

/** What is looked for within lines. Positions are bytes. */
export interface LinePattern {
  /**
   * The next match at or behind `from`, or only the beginning of the line that it is in; undefined when nothing is left. `block` holds whole
   * lines, or a part of one; `from` is where a line begins, or behind what was found.
   */
  find(block: Buffer, from: number): { readonly start: number; readonly end: number } | undefined;
  /** The matches in a line, without its line ending and in valid UTF-8, in order. */
  rangesIn(line: Buffer): Iterable<readonly [start: number, end: number]>;
}

export interface LinePatternOptions {
  readonly pattern: string;
  /** RE2 instead of literal text. */
  readonly regex: boolean;
  readonly ignoreCase: boolean;
}

const MAX_PATTERN_LENGTH = 4096;

/** @throws INVALID_ARGUMENT for an empty, overlong or malformed pattern, and for a literal text of several lines. */
export async function createLinePattern({ pattern, regex, ignoreCase }: LinePatternOptions): Promise<LinePattern> {
  if (pattern === "") throw new PicodError("INVALID_ARGUMENT", "invalid pattern: it is empty");
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new PicodError("INVALID_ARGUMENT", `invalid pattern: more than ${MAX_PATTERN_LENGTH} characters`);
  }
  if (!regex && pattern.includes("\n")) throw new PicodError("INVALID_ARGUMENT", "invalid pattern: no line holds a line feed");
  if (!regex && !ignoreCase) return new LiteralPattern(pattern);
  if (!regex && isAscii(pattern)) return new FoldedPattern(pattern);
  // Large, and only wanted here.
  const { compileRegexPattern } = await import("./regex-pattern.js");
  return compileRegexPattern(pattern, regex, ignoreCase);
}

class LiteralPattern implements LinePattern {
  readonly #text: Buffer;

  constructor(text: string) {
    this.#text = Buffer.from(text);
  }

  find(block: Buffer, from: number) {
    const start = block.indexOf(this.#text, from);
    return start < 0 ? undefined : { start, end: start + this.#text.length };
  }

  *rangesIn(line: Buffer) {
    for (let found = this.find(line, 0); found !== undefined; found = this.find(line, found.end)) {
      yield [found.start, found.end] as const;
    }
  }
}

/** ASCII text in any case. Bytes are looked at as latin1, whose letters beyond ASCII fold to none of ASCII. */
class FoldedPattern implements LinePattern {
  readonly #regExp: RegExp;
  #block: Buffer | undefined;
  #text = "";

  constructor(text: string) {
    this.#regExp = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"), "gi");
  }

  find(block: Buffer, from: number) {
    if (this.#block !== block) [this.#block, this.#text] = [block, block.toString("latin1")];
    this.#regExp.lastIndex = from;
    const found = this.#regExp.exec(this.#text);
    return found === null ? undefined : { start: found.index, end: found.index + found[0].length };
  }

  *rangesIn(line: Buffer) {
    this.#regExp.lastIndex = 0;
    for (const { index, 0: text } of line.toString("latin1").matchAll(this.#regExp)) yield [index, index + text.length] as const;
  }
}

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}
