import { closeSync, constants, openSync, realpathSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { posix } from "node:path";
import { hasRightsOfAnother } from "./credentials.js";
import { libc, SYSCALL } from "./libc.js";
import { decodePath, encodePath } from "./path-bytes.js";
import { actingGuard, guardedBy, PathGuard, type PathUse, useOf } from "./path-guard.js";
import type { PathRules } from "./path-rules.js";
import { knownPathOf, realPathOf } from "./real-path.js";
import { check, errnoName, systemError } from "./system-error.js";
import { wouldBePath } from "./would-be-path.js";

/** A descriptor that names a place without opening it for reading or writing, open(2). Node's constants lack it. */
export const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = -100;
/** Absolute paths, `..` and symbolic links are resolved as after chroot(2), without leaving the directory; openat2(2). */
const RESOLVE_IN_ROOT = 0x10n;
/** Links of /proc that lead to a descriptor, a working directory, a root … are not followed; openat2(2). */
const RESOLVE_NO_MAGICLINKS = 0x02n;
/** No link at all is followed; openat2(2). */
const RESOLVE_NO_SYMLINKS = 0x04n;
/** What leads out of the directory, absolute links included, fails with EXDEV; openat2(2). */
const RESOLVE_BENEATH = 0x08n;
/** How often a path is resolved again while somebody renames directories below it. */
const RESOLVE_ATTEMPTS = 64;

/**
 * The directory that file operations see as `/`. The kernel confines every path to it as a part of opening, so there is no
 * moment between a check and its use.
 */
export class Root {
  /** Where it is, as commands see it; `/` confines nothing. */
  readonly realPath: string;
  /** Judges everything that is opened of it; undefined: all may be opened. */
  readonly guard: PathGuard | undefined;
  readonly #fd: number | undefined;
  readonly #hasOpenat2: boolean;
  /** Directories that nothing outside is opened of; undefined: all of the root is. */
  readonly #prefixes: readonly string[] | undefined;

  /**
   * `/` confines nothing. @param directory or a root, of which nothing is opened but what is below the prefixes, and what the rules grant.
   * @throws when another directory cannot be opened, or the kernel has no openat2 (before Linux 5.6).
   */
  constructor(directory: string | Root, prefixes?: readonly string[], rules?: PathRules) {
    this.#prefixes = prefixes;
    this.guard = rules && new PathGuard(rules);
    if (directory instanceof Root) {
      this.realPath = directory.realPath;
      this.#hasOpenat2 = directory.#hasOpenat2;
      this.#fd = directory.#fd;
      return;
    }
    this.realPath = realpathSync(directory);
    this.#hasOpenat2 = hasOpenat2();
    this.#fd = directory === "/" ? undefined : openSync(directory, O_PATH | constants.O_DIRECTORY);
    if (this.#fd !== undefined) openBelow(this.#fd, "/", O_PATH, 0, RESOLVE_IN_ROOT);
  }

  /** The same for two that open the same. */
  get confinement(): string {
    if (this.guard === undefined) return this.#prefixes === undefined ? "" : JSON.stringify(this.#prefixes);
    return JSON.stringify([this.#prefixes ?? null, this.guard.rules.key]);
  }

  /** Whether a path, by its text, is below one of the prefixes. Links are for the kernel to judge, when it is opened. */
  mayHold(path: string): boolean {
    return this.#prefixes?.some((prefix) => belowPrefix(prefix, path) !== undefined) ?? true;
  }

  /**
   * Opens an absolute path. CLOEXEC is always set. For another user than the daemon's own, and where paths are judged, no link of /proc is
   * followed: the kernel lets a process through all of its own, and descriptors of the daemon lead to where other users' operations are.
   * @param use what it is judged for, where it is. @throws the errno of openat(2), the denial of the rules.
   */
  open(path: string, flags: number, mode = 0, use: PathUse = useOf(flags)): number {
    if (this.guard === undefined) return this.#open(path, flags, mode);
    if ((flags & constants.O_CREAT) !== 0) return this.#create(path, flags, mode);
    const fd = this.#openPlace(this.guard, path, O_PATH | (flags & (constants.O_NOFOLLOW | constants.O_DIRECTORY)), use);
    try {
      const isPlace = (flags & O_PATH) !== 0;
      this.guard.assertOpened(fd, use, !isPlace || use === "write");
      if (isPlace) return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    return openAgain(fd, path, flags);
  }

  /** Judges a path without opening what is there, or may be there later. @throws the denial of the rules. */
  assertMay(path: string, use: PathUse): void {
    if (this.guard === undefined) return;
    try {
      closeSync(this.open(path, O_PATH, 0, use));
    } catch (error) {
      if (errnoName(error) === undefined) throw error;
    }
  }

  #open(path: string, flags: number, mode: number): number {
    if (this.#prefixes !== undefined) return this.#openWithin(this.#prefixes, path, flags, mode);
    if (this.#fd !== undefined) return openBelow(this.#fd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    if (this.guard !== undefined || (this.#hasOpenat2 && hasRightsOfAnother())) {
      return openBelow(AT_FDCWD, path, flags, mode, RESOLVE_NO_MAGICLINKS);
    }
    return check(libc.openat(AT_FDCWD, encodePath(path), flags | O_CLOEXEC, mode), "open", path);
  }

  /** Names a place without any effect on what is there. What is missing is missing only to those who may know. */
  #openPlace(guard: PathGuard, path: string, flags: number, use: PathUse): number {
    try {
      return this.#open(path, flags, 0);
    } catch (error) {
      if (errnoName(error) === undefined || use === "resolve") throw error;
      const missing = this.#wouldBe(path);
      throw guard.mayMiss(missing, use) ? error : guard.denialOf(missing, use);
    }
  }

  /** A file that is not there yet: no link is followed, and nobody else's is opened. */
  #create(path: string, flags: number, mode: number): number {
    const name = posix.basename(path);
    if (path.endsWith("/") || name === "." || name === "..") throw systemError("open", path, osConstants.errno.EISDIR);
    const directoryFd = this.open(posix.dirname(path), O_PATH | constants.O_DIRECTORY, 0, "pass");
    try {
      return guardedBy(this.guard, () => openIn(directoryFd, name, flags | constants.O_EXCL, mode));
    } finally {
      closeSync(directoryFd);
    }
  }

  #wouldBe(path: string): string | undefined {
    const found = wouldBePath(path, (each) => {
      let fd: number;
      try {
        fd = this.#open(each, O_PATH | constants.O_NOFOLLOW, 0);
      } catch {
        return undefined;
      }
      try {
        return readLinkIn(fd, "");
      } catch {
        return "";
      } finally {
        closeSync(fd);
      }
    });
    return found === undefined || this.#fd === undefined ? found : posix.join(this.realPath, found);
  }

  /** Names the root itself, to tell it from others, to those also who may open nothing of it but what is below a prefix. */
  openTop(): number {
    return this.#fd === undefined
      ? openSync("/", O_PATH | constants.O_DIRECTORY)
      : openBelow(this.#fd, "/", O_PATH, 0, RESOLVE_IN_ROOT);
  }

  /**
   * Neither `..` nor a link leads out of the prefix, and the prefix itself is no link: who may write elsewhere cannot bend it.
   * @throws EACCES for what is outside, ENOSYS where the kernel cannot tell.
   */
  #openWithin(prefixes: readonly string[], path: string, flags: number, mode: number): number {
    for (const prefix of prefixes) {
      const rest = belowPrefix(prefix, path);
      if (rest === undefined) continue;
      const how = this.#fd === undefined ? RESOLVE_NO_SYMLINKS : RESOLVE_NO_SYMLINKS | RESOLVE_IN_ROOT;
      const directoryFd = openBelow(this.#fd ?? AT_FDCWD, prefix, O_PATH | constants.O_DIRECTORY, 0, how);
      try {
        return openBelow(directoryFd, rest, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === "EXDEV" ? outside(path) : error;
      } finally {
        closeSync(directoryFd);
      }
    }
    throw outside(path);
  }

  /** The path of what was opened, as those within the root name it: without links and dots. */
  pathOf(fd: number): string {
    const real = realPathOf(fd);
    return this.#fd === undefined ? real : real.slice(this.realPath.length) || "/";
  }
}

/** What is left of a path below a prefix; undefined when its text is not below it. A `..` is for the kernel, once it is below. */
function belowPrefix(prefix: string, path: string): string | undefined {
  const names = path.split("/");
  const wanted = prefix.split("/").filter(Boolean);
  let at = 0;
  for (const name of wanted) {
    while (names[at] === "" || names[at] === ".") at++;
    if (names[at++] !== name) return undefined;
  }
  const rest = names.slice(at).join("/").replace(/^\/+/, "");
  return rest === "" ? "." : rest;
}

function outside(path: string): NodeJS.ErrnoException {
  return systemError("open", path, osConstants.errno.EACCES);
}

/** What was named, opened as it is to be used, whoever has renamed it since. Closes the descriptor that names it. */
function openAgain(fd: number, path: string, flags: number): number {
  try {
    return check(libc.openat(AT_FDCWD, `/proc/self/fd/${fd}`, (flags & ~constants.O_NOFOLLOW) | O_CLOEXEC, 0), "open", path);
  } finally {
    closeSync(fd);
  }
}

/** Whether this kernel can tell where paths lead, and follow none that leads elsewhere. @throws Error that says what is missing. */
export function assertJudging(): void {
  if (!hasOpenat2()) throw new Error("openat2(2) is missing, which Linux has since 5.6, or a filter of system calls forbids it");
  const fd = openSync("/", O_PATH | constants.O_DIRECTORY);
  try {
    if (knownPathOf(fd) === "/") return;
  } catch (error) {
    throw new Error("/proc/self/fd cannot be read", { cause: error });
  } finally {
    closeSync(fd);
  }
  throw new Error("/proc/self/fd does not say where files are");
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

/**
 * Opens one name in an opened directory; a last symbolic link is not followed. A directory, and a name that is not opened for its content, are
 * not judged: what is done with them is. @throws errno of openat(2), the denial of the acting guard.
 */
export function openIn(directoryFd: number, name: string, flags: number, mode = 0): number {
  const guard = (flags & (O_PATH | constants.O_DIRECTORY)) === 0 ? actingGuard() : undefined;
  guard?.assertName(directoryFd, name, useOf(flags));
  const fd = openUnjudged(directoryFd, name, flags, mode);
  try {
    guard?.assertOneName(fd, useOf(flags));
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The same for a file that has no name yet, or one of ours. */
export function openUnjudged(directoryFd: number, name: string, flags: number, mode = 0): number {
  return check(libc.openat(directoryFd, encodePath(name), flags | constants.O_NOFOLLOW | O_CLOEXEC, mode), "open", name);
}

const linkTarget = Buffer.alloc(4096);

/** The target of a symbolic link in an opened directory, or of the link itself that was opened when the name is empty. */
export function readLinkIn(directoryFd: number, name: string): string {
  const length = check(libc.readlinkat(directoryFd, encodePath(name), linkTarget, linkTarget.length), "readlink", name);
  return decodePath(linkTarget.subarray(0, length));
}

export function makeDirectoryIn(directoryFd: number, name: string, mode: number): void {
  actingGuard()?.assertMakesDirectory(directoryFd, name);
  check(libc.mkdirat(directoryFd, encodePath(name), mode), "mkdir", name);
}

const AT_REMOVEDIR = 0x200;

export function removeDirectoryIn(directoryFd: number, name: string): void {
  actingGuard()?.assertName(directoryFd, name, "write");
  check(libc.unlinkat(directoryFd, encodePath(name), AT_REMOVEDIR), "rmdir", name);
}

/** Takes back a directory that was made. */
export function removeMadeDirectoryIn(directoryFd: number, name: string): void {
  actingGuard()?.assertMakesDirectory(directoryFd, name);
  check(libc.unlinkat(directoryFd, encodePath(name), AT_REMOVEDIR), "rmdir", name);
}

/** Removes a name that is not a directory's. */
export function unlinkIn(directoryFd: number, name: string): void {
  actingGuard()?.assertName(directoryFd, name, "write");
  check(libc.unlinkat(directoryFd, encodePath(name), 0), "unlink", name);
}
