import { PicodError } from "../../errors/picod-error.js";
import { isDirectory, readNames, statIn } from "../../os/directory.js";
import { decodePath, pathBytes } from "../../os/path-bytes.js";
import { removeDirectoryIn, unlinkIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import { Descent, type Identity, identityOf, isSame } from "../walking/descent.js";
import { SortedNames } from "../walking/sorted-names.js";
import { Unlinker } from "./unlinker.js";

/** How often a directory is emptied again while others put files into it, or because its file system forgot some while it changed. */
const MAX_PASSES = 16;
/** What ends a removal: it says nothing about the entry. */
const SCARCE = ["EMFILE", "ENFILE", "ENOMEM"];
/** It was removed, or moved elsewhere, by somebody else. */
const VANISHED = ["ENOENT", "ESTALE"];

/** What a removal has come to so far. */
export interface Removal {
  /** Files, directories and links. */
  removed: number;
  /** The first that could not be removed. */
  failure: { readonly path: string; readonly error: unknown } | undefined;
}

export interface TreeTarget {
  readonly directoryFd: number;
  readonly name: string;
  /** The directory that is never removed, nor what is in it, wherever it is mounted. */
  readonly rootIdentity: Identity;
}

/** A directory that is being emptied. */
interface Level {
  readonly name: string;
  readonly passes: number;
  /** What is left of it once the rest is unlinked. */
  readonly directories: SortedNames;
  isUnlinked: boolean;
  hasRemoved: boolean;
  hasFailed: boolean;
}

/**
 * Removes a name of an opened directory with all that is below it, and goes on past what cannot be removed. It goes from descriptor to
 * descriptor and follows no link, so nobody who renames meanwhile can lead it out of the tree. To be called with the rights of the acting
 * user, in turns; what it yields is to be waited for. Leaving early is safe. @param above path of the opened directory, for messages.
 */
export function removeTree(
  target: TreeTarget,
  above: string,
  removal: Removal,
): Generator<Promise<unknown> | undefined, void, void> {
  return new TreeRemoval(target, above, removal).steps();
}

export function rootProtected(path: string): PicodError {
  return new PicodError("ROOT_PROTECTED", `cannot remove ${path}: it is the root of the file system`, { path });
}

class TreeRemoval {
  readonly #target: TreeTarget;
  readonly #above: string;
  readonly #removal: Removal;
  readonly #descent: Descent;
  readonly #unlinker = new Unlinker();
  /** The first stands for the opened directory, of which only one name is to be removed. */
  readonly #levels: Level[];

  constructor(target: TreeTarget, above: string, removal: Removal) {
    this.#target = target;
    this.#above = above === "/" ? "" : above;
    this.#removal = removal;
    this.#descent = new Descent(target.directoryFd);
    this.#levels = [{ ...newLevel("", 1), isUnlinked: true }];
  }

  get #level(): Level {
    return this.#levels.at(-1) as Level;
  }

  *steps(): Generator<Promise<unknown> | undefined, void, void> {
    try {
      this.#removeEntry(this.#target.name);
      while (this.#levels.length > 0) {
        if (!this.#level.isUnlinked) yield* this.#unlinkAll();
        const directory = this.#level.directories.take();
        if (directory === undefined) this.#finishLevel();
        else this.#enter(decodePath(directory), 1);
        yield undefined;
      }
      yield this.#unlinker.allClosed();
    } finally {
      this.#descent.close();
    }
  }

  /** Removes a name unless it is a directory with something in it, which is left for later. */
  #removeEntry(name: string): void {
    try {
      const { fd } = this.#descent;
      const stats = statIn(fd, name);
      if (isDirectory(stats)) {
        if (!this.#tryRemoveDirectory(fd, name)) this.#level.directories.add(pathBytes(name));
        return;
      }
      this.#unlinker.unlink(fd, name, stats);
      this.#count();
    } catch (error) {
      // It has become one meanwhile.
      if (errnoName(error) === "EISDIR") this.#level.directories.add(pathBytes(name));
      else this.#fail(name, error);
    }
  }

  /** Whatever keeps it from going: there may be something in it that can be removed. */
  #tryRemoveDirectory(fd: number, name: string): boolean {
    try {
      removeDirectoryIn(fd, name);
    } catch {
      return false;
    }
    this.#count();
    return true;
  }

  #enter(name: string, passes: number): void {
    try {
      this.#descent.enter(name);
    } catch (error) {
      if (["ENOTDIR", "ELOOP"].includes(errnoName(error) ?? "")) this.#unlinkReplaced(name, passes);
      else this.#fail(name, error);
      return;
    }
    if (isSame(identityOf(this.#descent.fd), this.#target.rootIdentity)) {
      this.#fail(name, rootProtected(this.#pathOf(name)));
      this.#descent.leave();
    } else {
      this.#levels.push(newLevel(name, passes));
    }
  }

  /** Somebody has put a link or a file in the place of a directory. */
  #unlinkReplaced(name: string, passes: number): void {
    try {
      unlinkIn(this.#descent.fd, name);
      this.#count();
    } catch (error) {
      // The directory is back.
      if (errnoName(error) === "EISDIR" && passes < MAX_PASSES) this.#enter(name, passes + 1);
      else this.#fail(name, error);
    }
  }

  *#unlinkAll(): Generator<Promise<unknown> | undefined, void, void> {
    this.#level.isUnlinked = true;
    try {
      for (let read = readNames(this.#descent.fd); read !== undefined; read = readNames(this.#descent.fd)) {
        // The names must be taken before others read in their turns.
        for (const name of read.map(decodePath)) {
          this.#removeEntry(name);
          yield this.#unlinker.full;
        }
      }
    } catch (error) {
      // It was removed, or cannot be read.
      this.#fail("", error);
    }
  }

  /** Goes up from a directory that has been emptied, as far as could be, and removes it. */
  #finishLevel(): void {
    const level = this.#levels.pop() as Level;
    if (this.#levels.length === 0 || !this.#goUp()) return;
    this.#level.hasRemoved ||= level.hasRemoved;
    if (level.hasFailed) this.#level.hasFailed = true;
    else this.#removeEmptied(level);
  }

  /** False when it has come further up than to the directory above: what cannot be come back to is left. */
  #goUp(): boolean {
    for (let isAbove = true; ; isAbove = false) {
      try {
        this.#descent.leave();
        return isAbove;
      } catch (error) {
        this.#fail("", error);
        const left = this.#levels.pop() as Level;
        this.#level.hasFailed ||= left.hasFailed;
      }
    }
  }

  #removeEmptied({ name, passes, hasRemoved }: Level): void {
    try {
      removeDirectoryIn(this.#descent.fd, name);
      this.#count();
    } catch (error) {
      const isRefilled = ["ENOTEMPTY", "EEXIST"].includes(errnoName(error) ?? "") && hasRemoved && passes < MAX_PASSES;
      if (errnoName(error) === "ENOTDIR") this.#unlinkReplaced(name, passes);
      else if (isRefilled) this.#enter(name, passes + 1);
      else this.#fail(name, error);
    }
  }

  #count(): void {
    this.#removal.removed++;
    this.#level.hasRemoved = true;
  }

  #fail(name: string, error: unknown): void {
    const errno = errnoName(error);
    if (VANISHED.includes(errno ?? "")) return;
    if (SCARCE.includes(errno ?? "") || (errno === undefined && !(error instanceof PicodError))) throw error;
    this.#level.hasFailed = true;
    this.#removal.failure ??= { path: this.#pathOf(name), error };
  }

  #pathOf(name: string): string {
    const names = this.#levels.slice(1).map((level) => level.name);
    return [this.#above, ...names, ...(name === "" ? [] : [name])].join("/");
  }
}

function newLevel(name: string, passes: number): Level {
  return { name, passes, directories: new SortedNames(), isUnlinked: false, hasRemoved: false, hasFailed: false };
}
