import { ANY, type CharacterSet, SegmentGlob, STAR, type Steps, type Token } from "./glob-segment.js";

/** Any number of directories, also none. */
export const DIRECTORIES = "**";

/** A glob of whole paths, or, without a slash, of names. */
export class Glob {
  readonly #segments: readonly (SegmentGlob | typeof DIRECTORIES)[];
  /** It has no slash, so it is about the last component alone. */
  readonly #ofName: boolean;
  /** A slash at its end: only directories match. */
  readonly directoriesOnly: boolean;

  /** @throws SyntaxError that says what is malformed. */
  constructor(pattern: string) {
    this.directoriesOnly = pattern.endsWith("/");
    const body = this.directoriesOnly ? pattern.slice(0, -1) : pattern;
    this.#ofName = !body.includes("/");
    const segments = splitSegments(body);
    if (segments.length > 1 && segments[0] === "") segments.shift();
    const compiled = segments.map((segment) =>
      !this.#ofName && /^\*\*+$/.test(segment) ? DIRECTORIES : new SegmentGlob(parseSegment(segment)),
    );
    // Something has to be in the directories at the end.
    if (compiled.at(-1) === DIRECTORIES) compiled.push(new SegmentGlob([STAR]));
    this.#segments = compiled.filter((segment, index) => segment !== DIRECTORIES || compiled[index - 1] !== DIRECTORIES);
  }

  /** `names` are the components of a path. */
  matches(names: readonly string[], isDirectory: boolean, steps: Steps): boolean {
    if (this.directoriesOnly && !isDirectory) return false;
    const segments = this.#segments;
    if (this.#ofName) return (segments[0] as SegmentGlob).matches(names.at(-1) ?? "", steps);
    let [next, at, star, starAt] = [0, 0, -1, 0];
    while (at < names.length) {
      const segment = segments[next];
      if (segment === DIRECTORIES) {
        star = next++;
        starAt = at;
      } else if (segment?.matches(names[at] as string, steps)) {
        next++;
        at++;
      } else {
        steps.left--;
        if (star < 0 || steps.left < 0) return false;
        [next, at] = [star + 1, ++starAt];
      }
    }
    return next === segments.length;
  }
}

/** Cuts at slashes, those in brackets left alone; a backslash before a slash changes nothing. */
export function splitSegments(pattern: string): string[] {
  const segments = [""];
  for (let at = 0; at < pattern.length; ) {
    let end = at + 1;
    if (pattern[at] === "\\") end = Math.min(at + 2, pattern.length);
    else if (pattern[at] === "[") end = parseSet(pattern, at).end;
    const piece = pattern.slice(at, end);
    if (piece === "/" || piece === "\\/") segments.push("");
    else segments[segments.length - 1] += piece;
    at = end;
  }
  return segments;
}

export function parseSegment(segment: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < segment.length; ) {
    let code = segment.codePointAt(at) as number;
    if (segment[at] === "[") {
      const { set, end } = parseSet(segment, at);
      tokens.push(set);
      at = end;
      continue;
    }
    if (segment[at] === "*") tokens.push(STAR);
    else if (segment[at] === "?") tokens.push(ANY);
    else {
      if (segment[at] === "\\") code = codeAt(segment, ++at, "a backslash at the end");
      tokens.push(code);
    }
    at += String.fromCodePoint(code).length;
  }
  return tokens;
}

const CLASSES: Readonly<Record<string, string>> = {
  alnum: "09AZaz",
  alpha: "AZaz",
  blank: "  \t\t",
  cntrl: "\0\x1f\x7f\x7f",
  digit: "09",
  graph: "!~",
  lower: "az",
  print: " ~",
  punct: "!/:@[`{~",
  space: "\t\r  ",
  upper: "AZ",
  xdigit: "09AFaf",
};

/** Reads a set, `[` to `]`, as git(1) does: a first `]` is itself, so is a `-` that is first or last. */
export function parseSet(pattern: string, start: number): { set: CharacterSet; end: number } {
  const unclosed = "a [ without its ]";
  const ranges: number[] = [];
  let at = start + 1;
  const negated = pattern[at] === "!" || pattern[at] === "^";
  if (negated) at++;
  let previous: number | undefined;
  for (let first = true; first || pattern[at] !== "]"; first = false) {
    let code = codeAt(pattern, at, unclosed);
    const close = pattern.indexOf("]", at + 2);
    if (pattern.startsWith("[:", at) && close > at + 2 && pattern[close - 1] === ":") {
      const bounds = CLASSES[pattern.slice(at + 2, close - 1)];
      if (bounds === undefined) throw new SyntaxError(`an unknown class ${pattern.slice(at, close + 1)}`);
      for (const bound of bounds) ranges.push(bound.charCodeAt(0));
      previous = undefined;
      at = close + 1;
      continue;
    }
    if (pattern[at] === "-" && previous !== undefined && pattern[at + 1] !== "]" && at + 1 < pattern.length) {
      if (pattern[++at] === "\\") at++;
      code = codeAt(pattern, at, unclosed);
      ranges.push(previous, code);
      previous = undefined;
    } else {
      if (pattern[at] === "\\") code = codeAt(pattern, ++at, unclosed);
      ranges.push(code, code);
      previous = code;
    }
    at += String.fromCodePoint(code).length;
  }
  return { set: { negated, ranges }, end: at + 1 };
}

function codeAt(text: string, at: number, otherwise: string): number {
  const code = text.codePointAt(at);
  if (code === undefined) throw new SyntaxError(otherwise);
  return code;
}
