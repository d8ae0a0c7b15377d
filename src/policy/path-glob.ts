import { DIRECTORIES, parseSegment, splitSegments } from "../filesystem/patterns/glob.js";
import { SegmentGlob } from "../filesystem/patterns/glob-segment.js";

/** Globs come from whoever operates the daemon, and a path is short: nothing has to be cut off. */
const NO_LIMIT = { left: Number.POSITIVE_INFINITY };

type Segment = SegmentGlob | typeof DIRECTORIES;

/**
 * A glob of absolute paths. `*` and `?` stand for what is within a name, a leading dot included, `[…]` for one character of a set, `**` as a
 * whole name for any directories, also none; at the end it is everything below, however deep, and not the directory itself.
 */
export class PathGlob {
  readonly #segments: readonly Segment[];

  /** @param home what `~` at the beginning stands for. @throws SyntaxError that says what is malformed. */
  constructor(pattern: string, home: string) {
    const [below, literal] = /^~(\/|$)/.test(pattern) ? [pattern.slice(1), home] : [pattern, ""];
    if (literal === "" && !pattern.startsWith("/")) throw new SyntaxError('it begins with neither "/" nor "~/"');
    const names = splitSegments(below).filter((name) => name !== "");
    if (names.some((name) => name === "." || name === "..")) throw new SyntaxError("it has . or .. in it");
    const segments = names.map((name) => (/^\*\*+$/.test(name) ? DIRECTORIES : new SegmentGlob(parseSegment(name))));
    this.#segments = [...literalSegments(literal), ...segments].filter(
      (segment, index, all) => segment !== DIRECTORIES || all[index - 1] !== DIRECTORIES,
    );
  }

  /** Whether it stands for a path. */
  matches(names: readonly string[]): boolean {
    // Everything is below the directory that is below nothing.
    if (names.length === 0) return this.#segments.length === 0 || this.matchesAllBelow(names);
    return this.#reached(names).accepts;
  }

  /** Whether it stands for some path below this one. */
  leadsBeyond(names: readonly string[]): boolean {
    return this.#reached(names).states.size > 0;
  }

  /** Whether it stands for every path below this one. */
  matchesAllBelow(names: readonly string[]): boolean {
    const last = this.#segments.length - 1;
    return this.#segments[last] === DIRECTORIES && this.#reached(names).states.has(last);
  }

  /** Which segments may be next after these names, and whether they could be all. */
  #reached(names: readonly string[]): { readonly states: ReadonlySet<number>; readonly accepts: boolean } {
    const segments = this.#segments;
    let states = this.#closed([0]);
    let accepts = segments.length === 0;
    for (const name of names) {
      const next: number[] = [];
      accepts = false;
      for (const state of states) {
        const segment = segments[state];
        if (segment === DIRECTORIES) {
          next.push(state);
          accepts ||= state === segments.length - 1;
        } else if (segment?.matches(name, NO_LIMIT)) {
          next.push(state + 1);
          accepts ||= state === segments.length - 1;
        }
      }
      states = this.#closed(next);
    }
    return { states, accepts };
  }

  /** Directories in the middle may be none. */
  #closed(from: readonly number[]): ReadonlySet<number> {
    const states = new Set<number>();
    for (let state of from) {
      for (; state < this.#segments.length; state++) {
        states.add(state);
        if (this.#segments[state] !== DIRECTORIES) break;
      }
    }
    return states;
  }
}

function literalSegments(path: string): Segment[] {
  return namesOf(path).map((name) => new SegmentGlob([...name].map((character) => character.codePointAt(0) as number)));
}

/** The directory, or file, that everything is in that a glob stands for; undefined when that depends on the user, or is everything. */
export function literalBeginning(pattern: string): string | undefined {
  if (!pattern.startsWith("/")) return undefined;
  const names = splitSegments(pattern).filter((name) => name !== "");
  const first = names.findIndex((name) => /[*?[\\]/.test(name));
  const literal = names.slice(0, first < 0 ? names.length : first);
  return literal.length === 0 ? undefined : `/${literal.join("/")}`;
}

/** The components of an absolute path. */
export function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}
