import { closeSync, constants, openSync, readlinkSync, realpathSync } from "node:fs";
import { hasRightsOfAnother } from "./credentials.js";
import { libc, SYSCALL } from "./libc.js";
import { decodePath, encodePath } from "./path-bytes.js";
import { check, systemError } from "./system-error.js";

/** A descriptor that names a place without opening it for reading or writing, open(2). Node's constants lack it. */
export const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;
/** Absolute paths, `..` and symbolic links are resolved as after chroot(2), without leaving the directory; openat2(2). */
const RESOLVE_IN_ROOT = 0x10n;
/** Links of /proc that lead to a descriptor, a working directory, a root … are not followed; openat2(2). */
const RESOLVE_NO_MAGICLINKS = 0x02n;
/** How often a path is resolved again while somebody renames directories below it. */
const RESOLVE_ATTEMPTS = 64;

/**
 * The directory that file operations see as `/`. The kernel confines every path to it as a part of opening, so there is no
 * moment between a check and its use.
 */
export class Root {
  /** Where it is, as commands see it; `/` confines nothing. */
  readonly realPath: string;
  readonly #fd: number | undefined;
  readonly #hasOpenat2: boolean;

  /** `/` confines nothing. @throws when another directory cannot be opened, or the kernel has no openat2 (before Linux 5.6). */
  constructor(directory: string) {
    this.realPath = realpathSync(directory);
    this.#hasOpenat2 = hasOpenat2();
    this.#fd = directory === "/" ? undefined : openSync(directory, O_PATH | constants.O_DIRECTORY);
    if (this.#fd !== undefined) openBelow(this.#fd, "/", O_PATH, 0, RESOLVE_IN_ROOT);
  }

  /**
   * Opens an absolute path. CLOEXEC is always set. For another user than the daemon's own no link of /proc is followed: the kernel lets a
   * process through all of its own, and descriptors of the daemon lead to where other users' operations are. @throws the errno of openat(2).
   */
  open(path: string, flags: number, mode = 0): number {
    if (this.#fd !== undefined) return openBelow(this.#fd, path, flags, mode, RESOLVE_IN_ROOT);
    if (this.#hasOpenat2 && hasRightsOfAnother()) return openBelow(AT_FDCWD, path, flags, mode, RESOLVE_NO_MAGICLINKS);
    return check(libc.openat(AT_FDCWD, encodePath(path), flags | O_CLOEXEC, mode), "open", path);
  }

  /** The path of what was opened, as those within the root name it: without links and dots. */
  pathOf(fd: number): string {
    const real = realPathOf(fd);
    return this.#fd === undefined ? real : real.slice(this.realPath.length) || "/";
  }
}

/** Where what was opened really is. Not to be called with the rights of another user, who may not look at the daemon's descriptors. */
export function realPathOf(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`);
}

function openBelow(directoryFd: number, path: string, flags: number, mode: number, resolve: bigint): number {
  const how = BigUint64Array.of(BigInt(flags | O_CLOEXEC), BigInt(mode), resolve);
  const bytes = encodePath(path);
  for (let attempt = 1; ; attempt++) {
    const fd = libc.openat2(SYSCALL.openat2, directoryFd, bytes, how, how.byteLength);
    if (fd >= 0) return fd;
    const error = systemError("open", path);
    if (error.code !== "EAGAIN" || attempt === RESOLVE_ATTEMPTS) throw error;
  }
}

/** Kernels before 5.6 do not have it, and sandboxes around the daemon may forbid it. */
function hasOpenat2(): boolean {
  const fd = libc.openat2(SYSCALL.openat2, AT_FDCWD, encodePath("/"), BigUint64Array.of(BigInt(O_PATH | O_CLOEXEC), 0n, 0n), 24);
  if (fd >= 0) closeSync(fd);
  return fd >= 0;
}

/** Opens one name in an opened directory; a last symbolic link is not followed. */
export function openIn(directoryFd: number, name: string, flags: number, mode = 0): number {
  return check(libc.openat(directoryFd, encodePath(name), flags | constants.O_NOFOLLOW | O_CLOEXEC, mode), "open", name);
}

const linkTarget = Buffer.alloc(4096);

/** The target of a symbolic link in an opened directory, or of the link itself that was opened when the name is empty. */
export function readLinkIn(directoryFd: number, name: string): string {
  const length = check(libc.readlinkat(directoryFd, encodePath(name), linkTarget, linkTarget.length), "readlink", name);
  return decodePath(linkTarget.subarray(0, length));
}

export function makeDirectoryIn(directoryFd: number, name: string, mode: number): void {
  check(libc.mkdirat(directoryFd, encodePath(name), mode), "mkdir", name);
}

const AT_REMOVEDIR = 0x200;

export function removeDirectoryIn(directoryFd: number, name: string): void {
  check(libc.unlinkat(directoryFd, encodePath(name), AT_REMOVEDIR), "rmdir", name);
}

/** Removes a name that is not a directory's. */
export function unlinkIn(directoryFd: number, name: string): void {
  check(libc.unlinkat(directoryFd, encodePath(name), 0), "unlink", name);
}
