import { PicodError } from "../../errors/picod-error.js";
import { pathBytes } from "../../os/path-bytes.js";
import { expandBraces } from "./expand-braces.js";
import { IgnoreRules } from "./gitignore.js";
import { Glob } from "./glob.js";
import type { Steps } from "./glob-segment.js";

/** How long a pattern may be, and how many all of a request may stand for. */
const MAX_PATTERN_CHARACTERS = 4096;
const MAX_GLOBS = 1000;
/** What may be spent on one path: a few milliseconds. Patterns that are meant well take a hundredth of it. */
const MAX_STEPS = 150_000;
/** How much the ignore files of a directory and of those above it may hold. */
const MAX_IGNORE_BYTES = 1024 * 1024;

export interface PathPatterns {
  /** Globs, one of which has to match. Empty: everything. */
  readonly include: readonly string[];
  /** Globs of what is left out, with all that is in it. */
  readonly exclude: readonly string[];
  /** Leave out `.git`, and what the ignore files that are added say. */
  readonly gitignore?: boolean;
  /** Leave out names that begin with a dot, and what is in such directories. */
  readonly skipHidden?: boolean;
}

interface IgnoreFile {
  /** How many components its directory's path has. */
  readonly depth: number;
  readonly directory: string;
  readonly rules: IgnoreRules;
  readonly bytes: number;
}

/** Which paths below a beginning are wanted. No pattern and no ignore file can make it slow: see MAX_STEPS. */
export class PathFilter {
  readonly #include: readonly Glob[];
  readonly #exclude: readonly Glob[];
  readonly #patterns: PathPatterns;
  /** Of the directories above the one whose rules were added last; outermost first. */
  #ignoreFiles: IgnoreFile[] = [];
  /** What was found out last about a directory and those above it, outermost first. */
  #known: { directory: string; leftOut: boolean }[] = [];
  readonly #steps: Steps = { left: 0 };

  /** @throws INVALID_ARGUMENT that names the malformed pattern. */
  constructor(patterns: PathPatterns) {
    this.#patterns = patterns;
    this.#include = compile("include", patterns.include);
    this.#exclude = compile("exclude", patterns.exclude);
  }

  /** Whether ignore files are asked for. */
  get usesIgnoreFiles(): boolean {
    return this.#patterns.gitignore === true;
  }

  /** Whether a path is to be reported. @throws INVALID_ARGUMENT when the globs of the request take too long. */
  includes(relativePath: string, isDirectory: boolean): boolean {
    this.#steps.left = MAX_STEPS;
    if (this.#leavesOut(relativePath, isDirectory)) return false;
    return this.#include.length === 0 || this.#matchesAny(this.#include, relativePath, isDirectory);
  }

  /** Whether to go into a directory: it is neither excluded nor ignored. */
  enters(relativePath: string): boolean {
    this.#steps.left = MAX_STEPS;
    return !this.#leavesOutDirectory(relativePath);
  }

  /**
   * Adds the rules of a .gitignore in `directory`, "" for the beginning; `content` is latin1. To be called in the order of a walk: the
   * rules of directories that are not above this one are forgotten. Of two in one directory the later has precedence. Rules that it
   * takes too long to come to are passed over. @throws RangeError when there is too much of it.
   */
  addIgnoreFile(directory: string, content: string): void {
    this.#ignoreFiles = this.#ignoreFiles.filter((file) => isWithin(directory, file.directory));
    const bytes = this.#ignoreFiles.reduce((sum, file) => sum + file.bytes, content.length);
    if (bytes > MAX_IGNORE_BYTES) throw new RangeError(`more than ${MAX_IGNORE_BYTES} bytes of ignore rules`);
    const depth = directory === "" ? 0 : directory.split("/").length;
    this.#ignoreFiles.push({ depth, directory, rules: new IgnoreRules(content), bytes: content.length });
    this.#known = [];
  }

  #leavesOut(relativePath: string, isDirectory: boolean): boolean {
    const slash = relativePath.lastIndexOf("/");
    if (slash >= 0 && this.#leavesOutDirectory(relativePath.slice(0, slash))) return true;
    const name = relativePath.slice(slash + 1);
    if (this.#patterns.skipHidden && name.startsWith(".")) return true;
    if (this.#exclude.length > 0 && this.#matchesAny(this.#exclude, relativePath, isDirectory)) return true;
    return this.usesIgnoreFiles && (name === ".git" || this.#ignores(relativePath, isDirectory));
  }

  #leavesOutDirectory(directory: string): boolean {
    while (this.#known.length > 0 && !isWithin(directory, this.#known.at(-1)?.directory ?? "")) this.#known.pop();
    const last = this.#known.at(-1);
    if (last?.directory === directory) return last.leftOut;
    const leftOut = this.#leavesOut(directory, true);
    this.#known.push({ directory, leftOut });
    return leftOut;
  }

  #ignores(relativePath: string, isDirectory: boolean): boolean {
    if (this.#ignoreFiles.length === 0) return false;
    const names = pathBytes(relativePath).toString("latin1").split("/");
    for (const { directory, depth, rules } of this.#ignoreFiles.toReversed()) {
      if (!isWithin(relativePath, directory) || relativePath === directory) continue;
      const ignored = rules.ignores(names.slice(depth), isDirectory, this.#steps);
      if (ignored !== undefined) return ignored;
    }
    return false;
  }

  #matchesAny(globs: readonly Glob[], relativePath: string, isDirectory: boolean): boolean {
    // Hostile ignore files may have spent all there was.
    const steps = { left: MAX_STEPS };
    const names = relativePath.split("/");
    const matches = globs.some((glob) => glob.matches(names, isDirectory, steps));
    if (steps.left < 0) throw new PicodError("INVALID_ARGUMENT", "invalid patterns: they take too long to match");
    return matches;
  }
}

function isWithin(path: string, directory: string): boolean {
  return directory === "" || path === directory || (path.startsWith(directory) && path[directory.length] === "/");
}

function compile(field: string, patterns: readonly string[]): Glob[] {
  const globs: Glob[] = [];
  for (const pattern of patterns) {
    try {
      if (pattern === "" || pattern === "/") throw new SyntaxError("it is empty");
      if (pattern.length > MAX_PATTERN_CHARACTERS) throw new SyntaxError(`more than ${MAX_PATTERN_CHARACTERS} characters`);
      for (const glob of expandBraces(pattern.replace(/^\.\//, ""), MAX_GLOBS)) globs.push(new Glob(glob));
      if (globs.length > MAX_GLOBS) throw new SyntaxError(`more than ${MAX_GLOBS} patterns`);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: ${pattern}: ${error.message}`, { pattern });
    }
  }
  return globs;
}
