import { constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { isDirectory, statIn } from "./directory.js";
import type { FilePermission, PathRules } from "./path-rules.js";
import { knownPathOf } from "./real-path.js";
import { errnoName, systemError } from "./system-error.js";
import { isTemporaryName } from "./temporary-name.js";

/**
 * What somebody opens a path for:
 *  - `read`: its content, its attributes; a directory that leads to something readable may be looked at too.
 *  - `write`: to change it.
 *  - `pass`: as the way to a name, which is judged itself.
 *  - `resolve`: to find out what a path means; nothing is told of what is there.
 */
export type PathUse = "read" | "write" | "pass" | "resolve";

/** A name in an opened directory. */
interface NameIn {
  readonly directoryFd: number;
  readonly name: string;
}

/** Of a name that is ours, and nobody else's. */
const OWN = Symbol("own");

let acting: PathGuard | undefined;

/** Who judges what the main thread does with files at this moment; undefined: nobody. */
export function actingGuard(): PathGuard | undefined {
  return acting;
}

/** Lets a guard judge one synchronous operation, down to each system call that takes a name. */
export function guardedBy<T>(guard: PathGuard | undefined, operation: () => T): T {
  const before = acting;
  acting = guard;
  try {
    return operation();
  } finally {
    acting = before;
  }
}

/** What opening with such flags is for. */
export function useOf(flags: number): PathUse {
  return (flags & (constants.O_WRONLY | constants.O_RDWR)) === 0 ? "read" : "write";
}

/**
 * Judges files by the paths that the kernel has found for them, for one caller. What was opened is asked where it is, so that no path is
 * resolved for the judgement and again for the use.
 */
export class PathGuard {
  readonly rules: PathRules;
  /** Hidden names of ours, and what they stand for. */
  readonly #staged = new Map<string, string | undefined>();

  constructor(rules: PathRules) {
    this.rules = rules;
  }

  /** A hidden name is judged as the one that it will have. */
  stage(hidden: string, standsFor: string | undefined): void {
    this.#staged.set(hidden, standsFor);
  }

  /** The hidden name is gone. */
  unstage(hidden: string): void {
    this.#staged.delete(hidden);
  }

  /** Judges what was opened. @param withContent whether its content is read or changed, rather than its attributes. @throws the rules' denial. */
  assertOpened(fd: number, use: PathUse, withContent: boolean): void {
    if (use === "resolve") return;
    const path = this.#pathOf(fd);
    if (!this.mayUse(path, use, () => fstatSync(fd).isDirectory())) throw this.#denial(use, path);
    if (withContent && use !== "pass") this.assertOneName(fd, use);
  }

  /** Judges a name of an opened directory, whether or not it is taken. @throws the rules' denial, ENOENT in a directory that is gone. */
  assertName(directoryFd: number, name: string, use: PathUse): void {
    const path = this.pathIn(directoryFd, name);
    if (!this.mayUse(path, use, () => isDirectoryIn({ directoryFd, name }))) throw this.#denial(use, path);
  }

  /** Judges a directory that is made: one on the way to what may be written is harmless. */
  assertMakesDirectory(directoryFd: number, name: string): void {
    const path = this.pathIn(directoryFd, name);
    if (this.mayUse(path, "write", () => true) || this.#leadsToWritable(path)) return;
    throw this.#denial("write", path);
  }

  /** Judges a directory in which a file is made whose name is judged later. */
  assertMakesIn(directoryFd: number): void {
    const path = this.pathIn(directoryFd, ".");
    if (!this.#leadsToWritable(path)) throw this.#denial("write", path);
  }

  /** Judges a change of attributes. What has no name at all is ours. */
  assertChanges(fd: number): void {
    const path = this.#pathOf(fd);
    if (path === undefined && fstatSync(fd).nlink === 0) return;
    if (!this.mayUse(path, "write", () => false)) throw this.#denial("write", path);
    this.assertOneName(fd, "write");
  }

  /** Judges one more name for what was opened, which must be one's own to read and to write. */
  assertLinks(fd: number, directoryFd: number, name: string): void {
    this.assertName(directoryFd, name, "write");
    const path = this.#pathOf(fd);
    for (const use of ["read", "write"] as const) if (!this.mayUse(path, use, () => false)) throw this.#denial(use, path);
  }

  /**
   * Judges a move: what may be read at the new place must have been before, so it takes reading and writing of all that is moved, and
   * writing of all that is there after. What is ours was judged while it was made.
   */
  assertRenames(from: NameIn, to: NameIn, exchanges: boolean): void {
    const isOurs = this.#staged.has(from.name);
    this.assertTree(to, "write", isDirectoryIn(isOurs ? to : from));
    if (!isOurs) {
      this.assertMoved(from);
      if (exchanges) this.assertMoved(to);
    }
  }

  /** Judges what is to leave its name. */
  assertMoved(from: NameIn): void {
    const hasTree = isDirectoryIn(from);
    this.assertTree(from, "read", hasTree);
    this.assertTree(from, "write", hasTree);
  }

  /** Judges a name and, with `hasTree`, all that is or could be below it. */
  assertTree({ directoryFd, name }: NameIn, use: "read" | "write", hasTree: boolean): void {
    const path = this.pathIn(directoryFd, name);
    if (!this.mayUse(path, use, () => false)) throw this.#denial(use, path);
    if (!hasTree || path === OWN || path === undefined) return;
    const all = use === "read" ? this.rules.mayReadAllBelow(path) : this.rules.mayWriteAllBelow(path);
    if (!all) throw this.rules.denial(permissionOf(use), path, "not all that may be below it is granted");
  }

  /** Whether a walk shows an entry: it may be read, or leads to something that may. */
  shows(directoryFd: number, name: string, isDirectory: boolean): boolean {
    return this.mayUse(this.pathIn(directoryFd, name), "read", () => isDirectory);
  }

  /** The same for a path that is known. */
  showsPath(path: string, isDirectory: boolean): boolean {
    return this.mayUse(this.#judged(path), "read", () => isDirectory);
  }

  /** Judges a path that leads nowhere: whoever may not know of it is not told so. @param path undefined: nobody can say where it would be. */
  mayMiss(path: string | undefined, use: PathUse): boolean {
    if (this.mayUse(this.#judged(path), use, () => true)) return true;
    return use === "write" && path !== undefined && this.#leadsToWritable(this.#judged(path));
  }

  denialOf(path: string | undefined, use: PathUse): Error {
    return this.#denial(use, path);
  }

  /**
   * A file with more names than one may be another's, of which its own path says nothing.
   * @throws the rules' denial, unless every path is granted.
   */
  assertOneName(fd: number, use: PathUse): void {
    const all = use === "write" ? this.rules.mayWriteAllBelow("/") : this.rules.mayReadAllBelow("/");
    if (all) return;
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.nlink < 2 || this.rules.mayHaveOtherNames?.(stats)) return;
    throw this.rules.denial(
      permissionOf(use),
      knownPathOf(fd) ?? "",
      `it has ${stats.nlink} names, and the others are not known`,
    );
  }

  mayUse(path: string | typeof OWN | undefined, use: PathUse, isDirectory: () => boolean): boolean {
    if (path === OWN || use === "resolve") return true;
    if (path === undefined) return false;
    const { rules } = this;
    if (use === "write") return rules.mayWrite(path);
    if (rules.mayRead(path) || (use === "pass" && rules.mayWrite(path))) return true;
    if (!rules.leadsToReadable(path) && !(use === "pass" && rules.leadsToWritable(path))) return false;
    return isDirectory();
  }

  /** @throws ENOENT in a directory that is gone. */
  pathIn(directoryFd: number, name: string): string | typeof OWN | undefined {
    const above = knownPathOf(directoryFd);
    if (above === undefined && fstatSync(directoryFd).nlink === 0) throw systemError("open", name, osConstants.errno.ENOENT);
    if (above === undefined) return undefined;
    if (name === "." || name === "") return this.#judged(above);
    return this.#judged(above === "/" ? `/${name}` : `${above}/${name}`);
  }

  #pathOf(fd: number): string | typeof OWN | undefined {
    return this.#judged(knownPathOf(fd));
  }

  /** With hidden names replaced by what they stand for; undefined for those of others. */
  #judged(path: string | undefined): string | typeof OWN | undefined {
    if (path === undefined || !path.includes("/.picod-")) return path;
    const names: string[] = [];
    for (const name of path.split("/")) {
      if (!isTemporaryName(name)) {
        names.push(name);
        continue;
      }
      if (!this.#staged.has(name)) return undefined;
      const standsFor = this.#staged.get(name);
      if (standsFor === undefined) return OWN;
      names.push(standsFor);
    }
    return names.join("/");
  }

  #leadsToWritable(path: string | typeof OWN | undefined): boolean {
    return path === OWN || (path !== undefined && this.rules.leadsToWritable(path));
  }

  #denial(use: PathUse, path: string | typeof OWN | undefined): Error {
    if (typeof path === "string") return this.rules.denial(permissionOf(use), path);
    return this.rules.denial(permissionOf(use), "", "where it is cannot be told");
  }
}

function permissionOf(use: PathUse): FilePermission {
  return use === "write" ? "filesystem.write" : "filesystem.read";
}

function isDirectoryIn({ directoryFd, name }: NameIn): boolean {
  try {
    return isDirectory(statIn(directoryFd, name));
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return false;
  }
}
