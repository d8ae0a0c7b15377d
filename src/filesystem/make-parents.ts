import { closeSync, constants } from "node:fs";
import { posix } from "node:path";
import { makeDirectoryIn, O_PATH, removeDirectoryIn } from "../os/root.js";
import { errnoName } from "../os/system-error.js";
import type { Access } from "./access.js";

const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** Narrowed by the daemon's umask. */
const DIRECTORY_MODE = 0o777;

/**
 * Opens a directory, making it and its missing parents. `made` collects what was made, outermost first. To be called with the
 * rights of the acting user. @throws errno of mkdir(2) and open(2).
 */
export function openDirectoryMakingParents(access: Access, path: string, made: string[]): number {
  try {
    return access.root.open(path, DIRECTORY);
  } catch (error) {
    if (errnoName(error) !== "ENOENT" || path === "/") throw error;
  }
  const parentFd = openDirectoryMakingParents(access, posix.dirname(path), made);
  try {
    makeDirectoryIn(parentFd, posix.basename(path), DIRECTORY_MODE);
    made.push(path);
  } catch (error) {
    // Somebody else made it meanwhile; or it is a dangling link, which opening will report.
    if (errnoName(error) !== "EEXIST") throw error;
  } finally {
    closeSync(parentFd);
  }
  return access.root.open(path, DIRECTORY);
}

/** Removes directories that were made for nothing, as far as they are still empty. */
export function removeMadeDirectories(access: Access, made: readonly string[]): void {
  for (const path of made.toReversed()) {
    try {
      const parentFd = access.root.open(posix.dirname(path), DIRECTORY);
      try {
        removeDirectoryIn(parentFd, posix.basename(path));
      } finally {
        closeSync(parentFd);
      }
    } catch (error) {
      // Others use it by now, or have removed it.
      if (!["ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"].includes(errnoName(error) ?? "")) throw error;
    }
  }
}
