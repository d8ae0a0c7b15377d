import { closeSync, constants } from "node:fs";
import { isDirectory, isSymbolicLink, statIn } from "../../os/directory.js";
import { makeDirectoryIn, O_PATH, openIn, unlinkIn } from "../../os/root.js";
import { errnoName, withPath } from "../../os/system-error.js";
import { invalidArchive } from "./invalid-archive.js";

const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** Narrowed by the daemon's umask; of directories that the archive does not name. */
const DIRECTORY_MODE = 0o777;
/** So many directories on the way to the last one stay open; what is deeper is opened again. */
const MAX_OPEN = 64;

/**
 * The directories that an archive is unpacked into, below an opened one. Entries of one directory come together, so the way to the last
 * one is kept open. It goes from descriptor to descriptor and never through a link, whoever puts one there.
 */
export class UnpackDirectories {
  readonly #beginningFd: number;
  /** The way from the beginning down. */
  readonly #open: { readonly name: string; readonly fd: number }[] = [];
  /** The last one, when it is below those. */
  #deepFd: number | undefined;

  /** The descriptor stays the caller's. */
  constructor(beginningFd: number) {
    this.#beginningFd = beginningFd;
  }

  /**
   * Opens a directory; with `make` the missing ones on the way are made. The descriptor is good until the next is opened. To be called with
   * the rights of the acting user. @throws INVALID_ARCHIVE when there is a link on the way, errno of open(2) and mkdir(2).
   */
  open(entry: string, components: readonly string[], make: boolean): number {
    this.#closeDeep();
    this.#leaveFrom(this.#commonWith(components));
    let fd = this.#open.at(-1)?.fd ?? this.#beginningFd;
    for (let at = this.#open.length; at < components.length; at++) {
      const name = components[at] as string;
      const next = this.#step(entry, fd, components.slice(0, at + 1), make);
      if (at < MAX_OPEN) {
        this.#open.push({ name, fd: next });
      } else {
        this.#closeDeep();
        this.#deepFd = next;
      }
      fd = next;
    }
    return fd;
  }

  /** Makes a directory in place of what is not one. Returns whether it is new. */
  make(parentFd: number, components: readonly string[], mode: number): boolean {
    const name = components.at(-1) as string;
    try {
      makeDirectoryIn(parentFd, name, mode);
      return true;
    } catch (error) {
      if (errnoName(error) !== "EEXIST") throw error;
    }
    if (isDirectory(statIn(parentFd, name))) return false;
    unlinkIn(parentFd, name);
    makeDirectoryIn(parentFd, name, mode);
    return true;
  }

  close(): void {
    this.#closeDeep();
    this.#leaveFrom(0);
  }

  #step(entry: string, fd: number, way: readonly string[], make: boolean): number {
    const name = way.at(-1) as string;
    try {
      return openIn(fd, name, DIRECTORY);
    } catch (error) {
      if (errnoName(error) === "ENOTDIR" && isLink(fd, name)) {
        throw invalidArchive(entry, `it would go through the symbolic link ${way.join("/")}`);
      }
      if (!make || errnoName(error) !== "ENOENT") throw withPath(error, way.join("/"));
    }
    try {
      makeDirectoryIn(fd, name, DIRECTORY_MODE);
    } catch (error) {
      // Somebody else made it meanwhile; or it is a link, which opening will refuse.
      if (errnoName(error) !== "EEXIST") throw withPath(error, way.join("/"));
    }
    return openIn(fd, name, DIRECTORY);
  }

  #commonWith(components: readonly string[]): number {
    let common = 0;
    while (common < this.#open.length && this.#open[common]?.name === components[common]) common++;
    return common;
  }

  #leaveFrom(level: number): void {
    for (const { fd } of this.#open.splice(level)) closeSync(fd);
  }

  #closeDeep(): void {
    if (this.#deepFd !== undefined) closeSync(this.#deepFd);
    this.#deepFd = undefined;
  }
}

function isLink(fd: number, name: string): boolean {
  try {
    return isSymbolicLink(statIn(fd, name));
  } catch {
    return false;
  }
}
