import { closeSync } from "node:fs";
import { constants } from "node:os";
import { type FileStats, isDirectory } from "../../os/directory.js";
import { hiddenName } from "../../os/hidden-name.js";
import { actingGuard } from "../../os/path-guard.js";
import { rename } from "../../os/rename.js";
import { makeDirectoryIn, openIn, unlinkIn } from "../../os/root.js";
import { errnoName, systemError, withPath } from "../../os/system-error.js";
import { isTemporaryName } from "../../os/temporary-name.js";
import { type Attributes, attributesOf, giveAttributes } from "../attributes.js";
import { kindOf } from "../entry-info.js";
import { Descent, OPEN_DIRECTORY, openAsPlace } from "../walking/descent.js";
import { DescriptorReserve } from "../walking/descriptor-reserve.js";
import type { Step } from "../walking/in-steps.js";
import { type WalkedEntry, walk } from "../walking/walk.js";
import type { DataCopier } from "./copy-data.js";
import { type Arrival, copyFile, type NamedFile } from "./copy-file.js";
import { copySpecial } from "./copy-special.js";
import { HardLinks, type NamedLevel } from "./hard-links.js";
import { isNamed, naming } from "./naming.js";
import { lookAt, type Place } from "./place.js";
import { removeStaged } from "./remove-staged.js";

/** What may have the name of the copy: a directory is merged into and a file written; nothing; or what rename(2) replaces. */
export type Onto = "merge" | "free" | "replace";

/** A directory of the copy. */
interface Level extends NamedLevel {
  /** Not to be seen yet: names in it are free. */
  readonly hidden: boolean;
  /** What it is to have once it is filled; undefined for one that existed. */
  readonly attributes: Attributes | undefined;
  /** Name that it takes then; undefined when it has its own. */
  readonly takes: string | undefined;
}

/** Copies what has a name, with all that is in it. */
export class TreeCopy {
  /** Files, directories and links that were copied. */
  entries = 0n;
  /** Bytes of the files. */
  bytes = 0n;
  readonly #data: DataCopier;
  readonly #from: Place;
  readonly #to: Place;
  readonly #onto: Onto;
  readonly #assertCopied: (from: NamedFile, stats: FileStats) => void;
  readonly #links: HardLinks;
  readonly #into: Descent;
  readonly #levels: Level[] = [{ above: undefined, name: "", path: "", hidden: false, attributes: undefined, takes: undefined }];

  /** @param assertCopied throws for what may not be among it. */
  constructor(data: DataCopier, from: Place, to: Place, onto: Onto, assertCopied: (from: NamedFile, stats: FileStats) => void) {
    this.#data = data;
    this.#from = from;
    this.#to = to;
    this.#onto = onto;
    this.#assertCopied = assertCopied;
    this.#links = new HardLinks(to.directoryFd);
    this.#into = new Descent(to.directoryFd, openAsPlace);
  }

  /** To be run by `inSteps`. @throws errno, with the path that it is about; but for what was merged it is undone then. */
  *run(stats: FileStats): Generator<Step, void, void> {
    if (!isDirectory(stats)) {
      yield* this.#copyOther(this.#from, stats, this.#to);
      return;
    }
    const reserve = naming(this.#to.path, () => new DescriptorReserve(this.#to.directoryFd));
    try {
      yield* this.#copyDirectory(stats);
    } catch (error) {
      this.#into.close();
      reserve.release();
      yield* this.#undo();
      throw isNamed(error) ? error : withPath(error, this.#from.path);
    } finally {
      this.#into.close();
      reserve.release();
    }
  }

  get #level(): Level {
    return this.#levels.at(-1) as Level;
  }

  *#copyDirectory(stats: FileStats): Generator<Step, void, void> {
    const above = this.#from.path === "/" ? "" : this.#from.path;
    const fd = naming(this.#from.path, () => openIn(this.#from.directoryFd, this.#from.name, OPEN_DIRECTORY));
    try {
      this.#enter({ ...this.#from, directoryFd: fd, name: "." }, stats, this.#to.name, this.#to.path);
      const onHidden = (directoryFd: number, name: string) => actingGuard()?.assertName(directoryFd, name, "read");
      const onUnreadable = (below: string, error: unknown) => naming(`${above}/${below}`, () => raise(error));
      for (const entry of walk(fd, { enters: isWanted, onHidden, onUnreadable })) {
        if (entry !== undefined && isWanted(entry)) yield* this.#copyEntry(entry, `${above}/${entry.relativePath}`);
        yield undefined;
      }
      while (this.#levels.length > 1) this.#leave();
    } finally {
      closeSync(fd);
    }
  }

  *#copyEntry({ directoryFd, name, stats, depth }: WalkedEntry, path: string): Generator<Step, void, void> {
    while (this.#levels.length > depth + 1) this.#leave();
    const from = { directoryFd, name, path };
    const toPath = `${this.#level.path === "/" ? "" : this.#level.path}/${name}`;
    if (isDirectory(stats)) this.#enter(from, stats, name, toPath);
    else yield* this.#copyOther(from, stats, { directoryFd: this.#into.fd, name, path: toPath });
  }

  /** Goes into the copy of a directory: one that is made now, or, where it is to be merged, the one that there is. */
  #enter(from: NamedFile, stats: FileStats, name: string, path: string): void {
    const above = this.#level;
    const { fd } = this.#into;
    const attributes = naming(from.path, () => {
      this.#assertCopied(from, stats);
      return readAttributes(from, stats);
    });
    naming(path, () => {
      const merges = !above.hidden && this.#mergesInto({ directoryFd: fd, name, path });
      const own = merges || above.hidden ? name : hiddenName(name);
      if (!merges) makeDirectoryIn(fd, own, 0o700);
      this.#levels.push({
        above,
        name: own,
        path,
        hidden: !merges,
        attributes: merges ? undefined : attributes,
        takes: own === name ? undefined : name,
      });
      this.#into.enter(own);
    });
    this.entries++;
  }

  /** Completes a directory of the copy. */
  #leave(): void {
    const level = this.#level;
    naming(level.path, () => {
      if (level.attributes !== undefined) giveAttributes(this.#into.fd, level.attributes);
      this.#into.leave();
      if (level.takes !== undefined) {
        const directoryFd = this.#into.fd;
        rename(
          { directoryFd, name: level.name },
          { directoryFd, name: level.takes },
          this.#onto === "replace" ? "replace" : "free",
        );
        level.name = level.takes;
      }
    });
    this.#levels.pop();
  }

  *#copyOther(from: NamedFile, stats: FileStats, to: NamedFile): Generator<Step, void, void> {
    const level = this.#level;
    const kind = kindOf(stats);
    naming(from.path, () => this.#assertCopied(from, stats));
    // Only the program that made it can make another.
    if (kind === "socket" && level.above !== undefined) return;
    const arrival = level.hidden ? "new" : this.#onto === "merge" ? "write" : this.#onto;
    if (arrival !== "new") naming(to.path, () => this.#assertNoDirectory(to));
    const isLinked = arrive(to, arrival, (name) => this.#links.link(stats, to.directoryFd, name));
    if (!isLinked) {
      if (kind === "file") this.bytes += BigInt(yield* copyFile(this.#data, from, to, arrival));
      else arrive(to, arrival, (name) => copySpecial(from, stats, to.directoryFd, name));
      naming(to.path, () => this.#links.remember(stats, level, to.directoryFd, to.name));
    }
    this.entries++;
  }

  /** False when nothing is there, or the copy is to take its name. @throws EEXIST, ENOTDIR when it cannot. */
  #mergesInto(place: Place): boolean {
    const existing = lookAt(place);
    if (existing === undefined) return false;
    if (this.#onto === "free") throw systemError("copy", undefined, constants.errno.EEXIST);
    if (!isDirectory(existing)) throw systemError("copy", undefined, constants.errno.ENOTDIR);
    return this.#onto === "merge";
  }

  #assertNoDirectory(place: Place): void {
    const existing = lookAt(place);
    if (existing === undefined) return;
    if (this.#onto === "free") throw systemError("copy", undefined, constants.errno.EEXIST);
    if (isDirectory(existing)) throw systemError("copy", undefined, constants.errno.EISDIR);
  }

  /** Removes what has not taken its name: there is one such directory at most, and what is below it is part of it. */
  *#undo(): Generator<Step, void, void> {
    const at = this.#levels.findIndex(({ takes, name }) => takes !== undefined && takes !== name);
    const staged = this.#levels[at];
    if (staged?.above === undefined) return;
    const above = new Descent(this.#to.directoryFd, openAsPlace);
    try {
      for (const { name } of this.#levels.slice(1, at)) above.enter(name);
      yield* removeStaged(above.fd, staged.name, staged.above.path);
    } finally {
      above.close();
    }
  }
}

/** Makes something under a hidden name and then gives it its own in one step; at once where nobody looks. False when `make` says so. */
function arrive(to: NamedFile, arrival: Arrival, make: (name: string) => boolean | undefined): boolean {
  return naming(to.path, () => {
    if (arrival === "new") return make(to.name) !== false;
    const hidden = { directoryFd: to.directoryFd, name: hiddenName(to.name) };
    try {
      if (make(hidden.name) === false) return false;
      rename(hidden, to, arrival === "free" ? "free" : "replace");
      return true;
    } finally {
      // Left over also where both are names of one file: then renaming does nothing.
      unlinkIfThere(hidden.directoryFd, hidden.name);
      actingGuard()?.unstage(hidden.name);
    }
  });
}

function unlinkIfThere(directoryFd: number, name: string): void {
  try {
    unlinkIn(directoryFd, name);
  } catch (error) {
    if (errnoName(error) !== "ENOENT") throw error;
  }
}

function readAttributes(from: NamedFile, stats: FileStats): Attributes {
  // To open the directory itself by this name takes the right to search it, which nobody needs of an empty one.
  if (from.name === ".") return attributesOf(from.directoryFd, stats);
  const fd = openIn(from.directoryFd, from.name, OPEN_DIRECTORY);
  try {
    return attributesOf(fd, stats);
  } finally {
    closeSync(fd);
  }
}

/** What is not finished belongs to another call, or is this very copy. */
function isWanted({ name }: WalkedEntry): boolean {
  return !isTemporaryName(name);
}

function raise(error: unknown): never {
  throw error;
}
