import { Glob } from "./glob.js";
import type { Steps } from "./glob-segment.js";

/** The longest line that is taken for a rule; no path is longer. */
const MAX_RULE_BYTES = 4096;
/** What it costs to read a rule, and each of its bytes, in steps of matching. */
const STEPS_PER_RULE = 400;
const STEPS_PER_BYTE = 8;

interface Rule {
  /** Undefined for what matches nothing: empty lines, comments and malformed rules. */
  readonly glob: Glob | undefined;
  readonly negated: boolean;
}

/** The rules of one .gitignore file, gitignore(5). Names and rules are latin1, one character for each byte: so git compares them. */
export class IgnoreRules {
  readonly #lines: readonly string[];
  /** By line. Each is read when it is first asked, so that what a long file costs is shared among many paths. */
  readonly #rules: Rule[] = [];

  constructor(content: string) {
    // The last rule that matches counts.
    this.#lines = content
      .replace(/^\xef\xbb\xbf/, "")
      .split("\n")
      .reverse();
  }

  /** `names` are the components of a path below the file's directory. Undefined when no rule is about it. */
  ignores(names: readonly string[], isDirectory: boolean, steps: Steps): boolean | undefined {
    for (let at = 0; at < this.#lines.length && steps.left > 0; at++) {
      const { glob, negated } = this.#rules[at] ?? this.#read(at, steps);
      if (glob?.matches(names, isDirectory, steps)) return !negated;
    }
    return undefined;
  }

  #read(at: number, steps: Steps): Rule {
    const line = this.#lines[at] as string;
    steps.left -= STEPS_PER_RULE + line.length * STEPS_PER_BYTE;
    const rule = parseRule(line);
    this.#rules.push(rule);
    return rule;
  }
}

const NO_RULE: Rule = { glob: undefined, negated: false };

function parseRule(line: string): Rule {
  if (line.startsWith("#") || line.length > MAX_RULE_BYTES) return NO_RULE;
  const trimmed = withoutTrailingSpaces(line.endsWith("\r") ? line.slice(0, -1) : line);
  const negated = trimmed.startsWith("!");
  const pattern = negated ? trimmed.slice(1) : trimmed;
  if (pattern === "" || pattern === "/") return NO_RULE;
  try {
    return { glob: new Glob(pattern), negated };
  } catch (error) {
    if (error instanceof SyntaxError) return NO_RULE;
    throw error;
  }
}

/** A space behind a backslash stays. */
function withoutTrailingSpaces(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === "\\") end = Math.min(++at + 1, line.length);
    else if (line[at] !== " ") end = at + 1;
  }
  return line.slice(0, end);
}
