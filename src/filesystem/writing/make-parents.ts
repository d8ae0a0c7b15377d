import { closeSync, constants } from "node:fs";
import { posix } from "node:path";
import { PicodError } from "../../errors/picod-error.js";
import { changeOwner } from "../../os/attributes.js";
import { makeDirectoryIn, O_PATH, openIn, removeMadeDirectoryIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import type { Access } from "../access.js";

const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** Narrowed by the daemon's umask. */
const DIRECTORY_MODE = 0o777;

/**
 * Opens a directory, making it and its missing parents. `made` collects what was made, outermost first. To be called with the
 * rights of the acting user. @throws errno of mkdir(2) and open(2).
 */
export function openDirectoryMakingParents(access: Access, path: string, made: string[]): number {
  try {
    return openParent(access, path);
  } catch (error) {
    if (errnoName(error) !== "ENOENT" || path === "/") throw error;
  }
  const parentFd = openDirectoryMakingParents(access, posix.dirname(path), made);
  try {
    const name = posix.basename(path);
    makeDirectoryIn(parentFd, name, DIRECTORY_MODE);
    made.push(path);
    return openMade(access, parentFd, name);
  } catch (error) {
    // Somebody else made it meanwhile; or it is a dangling link, which opening will report.
    if (errnoName(error) !== "EEXIST") throw error;
  } finally {
    closeSync(parentFd);
  }
  return access.root.open(path, DIRECTORY, 0, "pass");
}

/**
 * Opens a directory as a part of the way to what is in it. Links of others in sticky directories may be followed on the way and not at its
 * end (fs.protected_symlinks), so that a dot behind them is the end. @throws errno of open(2).
 */
export function openParent(access: Access, path: string): number {
  try {
    return access.root.open(path, DIRECTORY, 0, "pass");
  } catch (error) {
    if (errnoName(error) !== "EACCES") throw error;
    return access.root.open(`${path}/.`, DIRECTORY, 0, "pass");
  }
}

/** Opens a directory that was just made, and gives it to whom it is for. */
export function openMade({ owner }: Access, parentFd: number, name: string): number {
  const fd = openIn(parentFd, name, DIRECTORY);
  try {
    if (owner !== undefined) changeOwner(fd, owner.uid, owner.gid);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Removes directories that were made for nothing, as far as they are still empty. */
export function removeMadeDirectories(access: Access, made: readonly string[]): void {
  for (const path of made.toReversed()) {
    try {
      const parentFd = access.root.open(posix.dirname(path), DIRECTORY, 0, "pass");
      try {
        removeMadeDirectoryIn(parentFd, posix.basename(path));
      } finally {
        closeSync(parentFd);
      }
    } catch (error) {
      // Others use it by now, or have removed it, or have moved it to where it may not be removed.
      if (!(error instanceof PicodError) && !["ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"].includes(errnoName(error) ?? ""))
        throw error;
    }
  }
}
