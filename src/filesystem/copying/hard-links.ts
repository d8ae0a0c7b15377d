import { closeSync, constants } from "node:fs";
import { type FileStats, statIn } from "../../os/directory.js";
import { linkIn } from "../../os/make-entry.js";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import { type Identity, identityOf, isSame } from "../walking/descent.js";

/** A directory of the copy, as it is called now. */
export interface NamedLevel {
  readonly above: NamedLevel | undefined;
  readonly path: string;
  name: string;
}

interface Copied extends Identity {
  readonly level: NamedLevel;
  readonly name: string;
  /** Names of the original that have not been come to. */
  left: bigint;
}

const NAME_ONLY = O_PATH | constants.O_NOFOLLOW;

/** Remembers copies of what has several names, so that the others become names of the copy. */
export class HardLinks {
  readonly #beginningFd: number;
  readonly #copies = new Map<string, Copied>();

  /** @param beginningFd the directory of the topmost level, which stays the caller's. */
  constructor(beginningFd: number) {
    this.#beginningFd = beginningFd;
  }

  /** To be told after something that is no directory was copied. */
  remember(original: FileStats, level: NamedLevel, directoryFd: number, name: string): void {
    if (original.nlink < 2n) return;
    const { dev, ino } = statIn(directoryFd, name);
    this.#copies.set(keyOf(original), { dev, ino, level, name, left: original.nlink - 1n });
  }

  /** Makes a name for the copy that there is; false when there is none, or it is where it was no longer. */
  link(original: FileStats, directoryFd: number, name: string): boolean {
    const copied = original.nlink < 2n ? undefined : this.#copies.get(keyOf(original));
    if (copied === undefined) return false;
    if (--copied.left === 0n) this.#copies.delete(keyOf(original));
    let fd: number | undefined;
    try {
      fd = this.#open(copied);
      if (!isSame(identityOf(fd), copied)) return false;
      linkIn(fd, directoryFd, name);
      return true;
    } catch (error) {
      if (UNLINKABLE.includes(errnoName(error) ?? "")) return false;
      throw error;
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }

  /** From descriptor to descriptor: somebody may have put a link in the place of a directory. */
  #open({ level, name }: Copied): number {
    const names = [name];
    for (let at = level; at.above !== undefined; at = at.above) names.unshift(at.name);
    let fd = this.#beginningFd;
    for (const step of names) {
      const last = fd;
      try {
        fd = openIn(last, step, NAME_ONLY);
      } finally {
        if (last !== this.#beginningFd) closeSync(last);
      }
    }
    return fd;
  }
}

/** The copy was moved away, or cannot have so many names: then there is one more copy. */
const UNLINKABLE = ["ENOENT", "ENOTDIR", "ELOOP", "EMLINK", "EPERM", "EXDEV", "EOPNOTSUPP", "EACCES"];

function keyOf({ dev, ino }: FileStats): string {
  return `${dev}:${ino}`;
}
