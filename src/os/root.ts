import { constants, openSync } from "node:fs";
import { libc, SYSCALL } from "./libc.js";
import { check, systemError } from "./system-error.js";

/** A descriptor that names a place without opening it for reading or writing, open(2). Node's constants lack it. */
export const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;
/** Absolute paths, `..` and symbolic links are resolved as after chroot(2), without leaving the directory; openat2(2). */
const RESOLVE_IN_ROOT = 0x10n;
/** How often a path is resolved again while somebody renames directories below it. */
const RESOLVE_ATTEMPTS = 64;

/**
 * The directory that file operations see as `/`. The kernel confines every path to it as a part of opening, so there is no
 * moment between a check and its use.
 */
export class Root {
  readonly #fd: number | undefined;

  /** `/` confines nothing. @throws when another directory cannot be opened, or the kernel has no openat2 (before Linux 5.6). */
  constructor(directory: string) {
    this.#fd = directory === "/" ? undefined : openSync(directory, O_PATH | constants.O_DIRECTORY);
    if (this.#fd !== undefined) this.#openBelow(this.#fd, "/", O_PATH);
  }

  /** Opens an absolute path. CLOEXEC is always set. @throws the errno of openat(2). */
  open(path: string, flags: number, mode = 0): number {
    if (this.#fd === undefined) return check(libc.openat(AT_FDCWD, path, flags | O_CLOEXEC, mode), "open", path);
    return this.#openBelow(this.#fd, path, flags | O_CLOEXEC, mode);
  }

  #openBelow(rootFd: number, path: string, flags: number, mode = 0): number {
    const how = BigUint64Array.of(BigInt(flags | O_CLOEXEC), BigInt(mode), RESOLVE_IN_ROOT);
    for (let attempt = 1; ; attempt++) {
      const fd = libc.openat2(SYSCALL.openat2, rootFd, path, how, how.byteLength);
      if (fd >= 0) return fd;
      const error = systemError("open", path);
      if (error.code !== "EAGAIN" || attempt === RESOLVE_ATTEMPTS) throw error;
    }
  }
}

/** Opens one name in an opened directory; a last symbolic link is not followed. */
export function openIn(directoryFd: number, name: string, flags: number, mode = 0): number {
  return check(libc.openat(directoryFd, name, flags | constants.O_NOFOLLOW | O_CLOEXEC, mode), "open", name);
}

const linkTarget = Buffer.alloc(4096);

/** The target of a symbolic link in an opened directory, or of the link itself that was opened when the name is empty. */
export function readLinkIn(directoryFd: number, name: string): string {
  const length = check(libc.readlinkat(directoryFd, name, linkTarget, linkTarget.length), "readlink", name);
  return linkTarget.toString("utf8", 0, length);
}

export function makeDirectoryIn(directoryFd: number, name: string, mode: number): void {
  check(libc.mkdirat(directoryFd, name, mode), "mkdir", name);
}

const AT_REMOVEDIR = 0x200;

export function removeDirectoryIn(directoryFd: number, name: string): void {
  check(libc.unlinkat(directoryFd, name, AT_REMOVEDIR), "rmdir", name);
}
