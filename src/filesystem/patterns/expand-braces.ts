import { parseSet } from "./glob.js";

/**
 * The globs that one with alternatives stands for: `*.{js,ts}` is `*.js` and `*.ts`. They may be nested.
 * @throws SyntaxError when it is malformed, or stands for more than `limit`.
 */
export function expandBraces(pattern: string, limit: number): string[] {
  const [globs, end] = expandUntil(pattern, 0, false, limit);
  if (end < pattern.length) throw new SyntaxError("a } without its {");
  return globs;
}

/** Expands up to the end or, within braces, up to the comma or brace that ends an alternative. */
function expandUntil(pattern: string, start: number, within: boolean, limit: number): [globs: string[], end: number] {
  let globs = [""];
  let at = start;
  while (at < pattern.length && pattern[at] !== "}" && !(within && pattern[at] === ",")) {
    let end = at + 1;
    let pieces: string[] | undefined;
    if (pattern[at] === "{") [pieces, end] = expandAlternatives(pattern, at, limit);
    else if (pattern[at] === "\\") end = at + 2;
    else if (pattern[at] === "[") ({ end } = parseSet(pattern, at));
    pieces ??= [pattern.slice(at, end)];
    if (globs.length * pieces.length > limit) throw new SyntaxError(`more than ${limit} alternatives`);
    globs = globs.flatMap((glob) => (pieces as string[]).map((piece) => glob + piece));
    at = end;
  }
  return [globs, at];
}

function expandAlternatives(pattern: string, start: number, limit: number): [globs: string[], end: number] {
  const all: string[] = [];
  let at = start;
  do {
    const [globs, end] = expandUntil(pattern, at + 1, true, limit);
    all.push(...globs);
    if (all.length > limit) throw new SyntaxError(`more than ${limit} alternatives`);
    at = end;
  } while (pattern[at] === ",");
  if (pattern[at] !== "}") throw new SyntaxError("a { without its }");
  return [all, at + 1];
}
