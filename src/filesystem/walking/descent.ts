import { closeSync, constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName, systemError } from "../../os/system-error.js";

export const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK | constants.O_NOCTTY;
/** So many directories of one way down stay open; going deeper closes the uppermost of them. */
const OPEN_DIRECTORIES = 64;
/** Then only the directory where the walk is stays open. */
const NO_DESCRIPTOR = ["EMFILE", "ENFILE"];

export type OpenDirectory = (directoryFd: number, name: string) => number;

const openToRead: OpenDirectory = (directoryFd, name) => openIn(directoryFd, name, OPEN_DIRECTORY);

/** Also one that may not be read: to make something in a directory, or nothing, takes no right to read it. */
export const openAsPlace: OpenDirectory = (directoryFd, name) => {
  try {
    return openToRead(directoryFd, name);
  } catch (error) {
    if (errnoName(error) !== "EACCES") throw error;
    return openIn(directoryFd, name, O_PATH | constants.O_DIRECTORY);
  }
};

/** Device and inode: what makes two descriptors the same directory. */
export interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

interface Level {
  readonly name: string;
  /** Undefined while it is closed; `identity` is known then. */
  fd: number | undefined;
  identity: Identity | undefined;
}

/**
 * The way from the directory where a walk begins down to where it is. However deep that is, few of its directories are open. One that was
 * closed is opened again on the way back, as the `..` of the one that is left or by its name, and must be the same directory:
 * nobody can lead the way elsewhere by renaming. To be used with the rights of the acting user.
 */
export class Descent {
  readonly #beginningFd: number;
  readonly #open: OpenDirectory;
  readonly #levels: Level[] = [];

  /** The descriptor stays the caller's. @param open how to open the directories on the way; to read them, by default. */
  constructor(beginningFd: number, open: OpenDirectory = openToRead) {
    this.#beginningFd = beginningFd;
    this.#open = open;
  }

  /** The directory where the walk is. */
  get fd(): number {
    const level = this.#levels.at(-1);
    if (level === undefined) return this.#beginningFd;
    if (level.fd === undefined) throw new Error("the directory is not open");
    return level.fd;
  }

  /** Goes into a directory; a symbolic link is not followed. @throws errno of open(2), and stays where it is. */
  enter(name: string): void {
    this.#levels.push({ name, fd: this.#openBelow(name), identity: undefined });
    const uppermost = this.#levels.at(-1 - OPEN_DIRECTORIES);
    if (uppermost !== undefined) closeLevel(uppermost);
  }

  /** Gives up the directories above when there is no descriptor: two are enough for any depth. */
  #openBelow(name: string): number {
    try {
      return this.#open(this.fd, name);
    } catch (error) {
      const open = this.#levels.slice(0, -1).filter(({ fd }) => fd !== undefined);
      if (!NO_DESCRIPTOR.includes(errnoName(error) ?? "") || open.length === 0) throw error;
      for (const level of open) closeLevel(level);
      return this.#open(this.fd, name);
    }
  }

  /**
   * Goes back up. After an error it is up, but in a directory that cannot be opened again: leave that too.
   * @throws ESTALE when the directory is at its place no longer, errno of open(2).
   */
  leave(): void {
    const left = this.#levels.pop();
    try {
      const level = this.#levels.at(-1);
      if (level !== undefined) level.fd ??= this.#openAgain(level, left?.fd);
    } finally {
      if (left?.fd !== undefined) closeSync(left.fd);
    }
  }

  close(): void {
    for (const { fd } of this.#levels.splice(0)) if (fd !== undefined) closeSync(fd);
  }

  #openAgain(level: Level, belowFd: number | undefined): number {
    const above = belowFd === undefined ? undefined : tryOpenSame(this.#open, belowFd, "..", level);
    if (above !== undefined) return above;
    // It was moved, or what is below it may not be searched.
    const open = this.#levels.findLastIndex(({ fd }) => fd !== undefined);
    let fd = this.#levels[open]?.fd ?? this.#beginningFd;
    for (const closed of this.#levels.slice(open + 1)) {
      const last = fd;
      try {
        fd = openSame(this.#open, last, closed.name, closed);
      } finally {
        if (last !== this.#beginningFd && last !== this.#levels[open]?.fd) closeSync(last);
      }
    }
    return fd;
  }
}

export function identityOf(fd: number): Identity {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return { dev, ino };
}

export function isSame(one: Identity, other: Identity | undefined): boolean {
  return one.dev === other?.dev && one.ino === other.ino;
}

/** Until the way leads back to it. */
function closeLevel(level: Level): void {
  if (level.fd === undefined) return;
  level.identity = identityOf(level.fd);
  closeSync(level.fd);
  level.fd = undefined;
}

function openSame(open: OpenDirectory, directoryFd: number, name: string, { identity }: Level): number {
  const fd = open(directoryFd, name);
  if (isSame(identityOf(fd), identity)) return fd;
  closeSync(fd);
  throw systemError("open", name, osConstants.errno.ESTALE);
}

function tryOpenSame(open: OpenDirectory, directoryFd: number, name: string, level: Level): number | undefined {
  try {
    return openSame(open, directoryFd, name, level);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return undefined;
  }
}
