import { type BigIntStats, closeSync, constants } from "node:fs";
import { posix } from "node:path";
import { PicodError } from "../errors/picod-error.js";
import { changeMode } from "../os/attributes.js";
import { withFileRightsOf } from "../os/credentials.js";
import { makeDirectoryIn, O_PATH } from "../os/root.js";
import { errnoName, withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { type EntryInfo, kindOf } from "./entry-info.js";
import { describeOpened } from "./stat.js";
import { openDirectoryMakingParents, openMade, removeMadeDirectories } from "./writing/make-parents.js";
import { lookUp } from "./writing/write-target.js";

const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** What names the same directory without it. */
const TRAILING = /(?:\/\.?)+$/;
/** Narrowed by the daemon's umask. */
const DEFAULT_MODE = 0o777;

export interface MakeDirectoryOptions {
  /** Permission bits of the directory when it is made, set exactly; 0777 less the umask by default. */
  readonly mode?: number | undefined;
  /** That it exists is an error. */
  readonly mustNotExist?: boolean;
}

export interface MadeDirectory {
  readonly entry: EntryInfo;
  /** False when it was there already. */
  readonly created: boolean;
}

/**
 * Makes a directory and its missing parents; after an error those are gone again. A link to a directory is a directory that exists.
 * @throws ALREADY_EXISTS, errno of mkdir(2).
 */
export function makeDirectory(access: Access, path: string, options: MakeDirectoryOptions = {}): MadeDirectory {
  const target = path.replace(TRAILING, "") || "/";
  const made: string[] = [];
  const fd = withFileRightsOf(access, () => {
    try {
      return make(access, target, options, made);
    } catch (error) {
      removeMadeDirectories(access, made);
      throw withPath(error, path);
    }
  });
  try {
    return { entry: describeOpened(access, path, fd), created: made.at(-1) === target };
  } finally {
    closeSync(fd);
  }
}

/** Opens the directory; `made` ends with it when it was made. */
function make(access: Access, path: string, { mode, mustNotExist = false }: MakeDirectoryOptions, made: string[]): number {
  const name = posix.basename(path);
  if (name === "" || name === "..") return openExisting(access, path, mustNotExist);
  const parentFd = openDirectoryMakingParents(access, posix.dirname(path), made);
  try {
    // Never wider than it will be, also for the moment before the exact mode is set.
    makeDirectoryIn(parentFd, name, (mode ?? DEFAULT_MODE) & 0o777);
    made.push(path);
    const fd = openMade(access, parentFd, name);
    if (mode !== undefined) setModeOrClose(fd, mode);
    return fd;
  } catch (error) {
    if (errnoName(error) !== "EEXIST") throw error;
    return openExisting(access, path, mustNotExist, lookUp(parentFd, name)?.stats);
  } finally {
    closeSync(parentFd);
  }
}

function setModeOrClose(fd: number, mode: number): void {
  try {
    changeMode(fd, mode);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** @param found what has the name, where that is known. */
function openExisting(access: Access, path: string, mustNotExist: boolean, found?: BigIntStats): number {
  if (mustNotExist) throw alreadyExists(path, "it exists");
  try {
    return access.root.open(path, DIRECTORY, 0, "pass");
  } catch (error) {
    if (found === undefined || !["ENOTDIR", "ENOENT", "ELOOP"].includes(errnoName(error) ?? "")) throw error;
    throw alreadyExists(path, `it is a ${kindOf(found)}`);
  }
}

function alreadyExists(path: string, why: string): PicodError {
  return new PicodError("ALREADY_EXISTS", `cannot make the directory ${path}: ${why}`, { path });
}
