import { closeSync, constants, fstatSync } from "node:fs";
import { PicodError } from "../../errors/picod-error.js";
import { linkIn, makeNodeIn, makeSymbolicLinkIn } from "../../os/make-entry.js";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName, withPath } from "../../os/system-error.js";
import { placeEntry } from "../copying/place-entry.js";
import type { ArchiveInput, UnpackSteps } from "./archive-input.js";
import { invalidArchive } from "./invalid-archive.js";
import type { ArchivedEntry } from "./read-tar-entry.js";
import { TYPE } from "./tar-block.js";
import type { ArchivedAttributes, AttributeSetter } from "./unpack-attributes.js";
import { UnpackDirectories } from "./unpack-directories.js";
import { unpackFile } from "./unpack-file.js";
import { unpackPath } from "./unpack-path.js";

/** What the owner of a directory can do until all is in it. */
const OWNER_BITS = 0o700;

/** Unpacks entries below an opened directory. To be used with the rights of the acting user. */
export class EntryUnpacker {
  readonly #input: ArchiveInput;
  readonly #attributes: AttributeSetter;
  readonly #directories: UnpackDirectories;
  /** Of directories, by path: they are applied when nothing is put into them any longer. */
  readonly #pending = new Map<string, ArchivedAttributes>();
  /** The same paths as they came. */
  readonly #made: string[] = [];

  /** The descriptor stays the caller's. */
  constructor(directoryFd: number, input: ArchiveInput, attributes: AttributeSetter) {
    this.#input = input;
    this.#attributes = attributes;
    this.#directories = new UnpackDirectories(directoryFd);
  }

  /** What the archive says about the directory itself that it is unpacked into, if anything. */
  get beginning(): ArchivedAttributes | undefined {
    return this.#pending.get("");
  }

  /** Takes all of its content from the input. @throws INVALID_ARCHIVE, errno with the path in the archive. */
  *unpack(entry: ArchivedEntry): UnpackSteps {
    const components = unpackPath(entry.name, entry.name, "its name");
    try {
      yield* this.#unpack(entry, components);
    } catch (error) {
      throw withPath(error, components.join("/"));
    }
    yield* this.#input.skip(entry.padding);
  }

  /** Gives directories their modes and times, those that are below others first. */
  *finish(): UnpackSteps {
    for (let path = this.#made.pop(); path !== undefined; path = this.#made.pop()) {
      try {
        const fd = this.#directories.open(path, path.split("/"), false);
        this.#attributes.apply(fd, this.#pending.get(path) as ArchivedAttributes);
      } catch (error) {
        // A later entry, or somebody else, has put something else in its place.
        const isReplaced = error instanceof PicodError || ["ENOENT", "ENOTDIR"].includes(errnoName(error) ?? "");
        if (!isReplaced) throw withPath(error, path);
      }
      yield undefined;
    }
  }

  close(): void {
    this.#directories.close();
  }

  *#unpack(entry: ArchivedEntry, components: string[]): UnpackSteps {
    const { type } = entry;
    const isDirectory = type === TYPE.directory || type === TYPE.gnuDumpDirectory || isOldDirectory(entry);
    if (components.length === 0) {
      if (!isDirectory) throw invalidArchive(entry.name, "its name is that of the directory to unpack into");
      this.#pending.set("", attributesOf(entry));
      return yield* this.#input.skip(entry.storedBytes);
    }
    const name = components.at(-1) as string;
    const parentFd = this.#directories.open(entry.name, components.slice(0, -1), true);
    if (isDirectory) {
      this.#directories.make(parentFd, components, (entry.mode & 0o777) | OWNER_BITS);
      const path = components.join("/");
      if (!this.#pending.has(path)) this.#made.push(path);
      this.#pending.set(path, attributesOf(entry));
      return yield* this.#input.skip(entry.storedBytes);
    }
    switch (type) {
      case TYPE.file:
      case TYPE.contiguousFile:
      case TYPE.gnuSparse:
        return yield* unpackFile(parentFd, name, entry, this.#input, this.#attributes);
      case TYPE.symlink:
        return this.#symbolicLink(parentFd, name, entry);
      case TYPE.hardLink:
        return this.#hardLink(components, entry);
      case TYPE.fifo:
        return this.#special(parentFd, name, entry, constants.S_IFIFO, (hidden) =>
          makeNodeIn(parentFd, hidden, BigInt(constants.S_IFIFO | 0o600), 0n),
        );
      case TYPE.characterDevice:
      case TYPE.blockDevice:
        throw invalidArchive(entry.name, "it is a device node");
      default:
        throw invalidArchive(entry.name, `its type ${JSON.stringify(type)} is unknown`);
    }
  }

  #symbolicLink(parentFd: number, name: string, entry: ArchivedEntry): void {
    if (entry.linkName === "" || entry.linkName.includes("\0")) throw invalidArchive(entry.name, "its target is malformed");
    this.#special(parentFd, name, entry, constants.S_IFLNK, (hidden) => makeSymbolicLinkIn(parentFd, hidden, entry.linkName));
  }

  /** Attributes go to what was made, by descriptor: somebody might put something else under its name. */
  #special(parentFd: number, name: string, entry: ArchivedEntry, kind: number, make: (name: string) => void): void {
    placeEntry(parentFd, name, (placed) => {
      make(placed);
      const fd = openIn(parentFd, placed, O_PATH);
      try {
        const { mode, nlink } = fstatSync(fd);
        if ((mode & constants.S_IFMT) === kind && nlink === 1) this.#attributes.apply(fd, entry);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** The link is to what was opened, so that nothing can be put in its place meanwhile. */
  #hardLink(components: readonly string[], entry: ArchivedEntry): void {
    const target = unpackPath(entry.name, entry.linkName, "its target");
    if (target.length === 0) throw invalidArchive(entry.name, "its target is a directory");
    const targetFd = this.#openTarget(entry, target);
    try {
      const stats = fstatSync(targetFd);
      if (stats.isDirectory()) throw invalidArchive(entry.name, "its target is a directory");
      if (stats.isBlockDevice() || stats.isCharacterDevice()) throw invalidArchive(entry.name, "its target is a device node");
      const parentFd = this.#directories.open(entry.name, components.slice(0, -1), true);
      placeEntry(parentFd, components.at(-1) as string, (placed) => linkIn(targetFd, parentFd, placed));
    } finally {
      closeSync(targetFd);
    }
  }

  #openTarget(entry: ArchivedEntry, target: readonly string[]): number {
    try {
      const directoryFd = this.#directories.open(entry.name, target.slice(0, -1), false);
      return openIn(directoryFd, target.at(-1) as string, O_PATH);
    } catch (error) {
      if (!["ENOENT", "ENOTDIR"].includes(errnoName(error) ?? "")) throw error;
      throw invalidArchive(entry.name, `there is no ${target.join("/")} to link to`);
    }
  }
}

/** Before there were types, a directory was a file whose name ends with a slash. */
function isOldDirectory({ type, name }: ArchivedEntry): boolean {
  return type === TYPE.file && name.endsWith("/");
}

/** Without the rest, of which there may be a lot. */
function attributesOf({ mode, uid, gid, userName, groupName, modifiedTimeNs, xattrs }: ArchivedEntry): ArchivedAttributes {
  return { type: TYPE.directory, mode, uid, gid, userName, groupName, modifiedTimeNs, xattrs };
}
