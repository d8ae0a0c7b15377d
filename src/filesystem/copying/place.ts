import { closeSync, constants, fstatSync } from "node:fs";
import { posix } from "node:path";
import { type FileStats, isDirectory, statIn } from "../../os/directory.js";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName, withPath } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { identityOf, isSame } from "../walking/descent.js";
import { openDirectoryMakingParents, openParent } from "../writing/make-parents.js";

/** A name in an opened directory: what a path means, whatever happens to the directories on the way meanwhile. */
export interface Place {
  readonly directoryFd: number;
  /** `.` for the directory itself, where the path has no last name of its own: `/`, `a/..`. */
  readonly name: string;
  readonly path: string;
}

/**
 * Opens the directory that a path ends in; the last name is not looked up. With `made` missing directories are made, and collected there. To
 * be called with the rights of the acting user; the caller closes `directoryFd`. @throws errno of open(2), mkdir(2).
 */
export function openPlace(access: Access, path: string, made?: string[]): Place {
  const name = posix.basename(path);
  const isItself = name === "" || name === "." || name === "..";
  const directory = isItself ? path : posix.dirname(path);
  try {
    const directoryFd = made === undefined ? openParent(access, directory) : openDirectoryMakingParents(access, directory, made);
    return { directoryFd, name: isItself ? "." : name, path };
  } catch (error) {
    throw withPath(error, path);
  }
}

/** Describes what has a name; a symbolic link itself. Undefined when the name is free. @throws errno of stat(2). */
export function lookAt({ directoryFd, name, path }: Place): FileStats | undefined {
  try {
    return statIn(directoryFd, name);
  } catch (error) {
    if (errnoName(error) === "ENOENT") return undefined;
    throw withPath(error, path);
  }
}

/** Whether a place lies in a directory, however deep. Directories that may not be searched end the question. */
export function isInside({ directoryFd, path }: Place, directory: FileStats): boolean {
  if (!isDirectory(directory)) return false;
  let fd: number | undefined = directoryFd;
  try {
    for (let last = identityOf(fd); ; ) {
      if (isSame(last, directory)) return true;
      const above = tryOpenAbove(fd);
      if (fd !== directoryFd) closeSync(fd);
      fd = above;
      if (fd === undefined) return false;
      const { dev, ino } = fstatSync(fd, { bigint: true });
      if (isSame(last, { dev, ino })) return false;
      last = { dev, ino };
    }
  } catch (error) {
    throw withPath(error, path);
  } finally {
    if (fd !== undefined && fd !== directoryFd) closeSync(fd);
  }
}

function tryOpenAbove(fd: number): number | undefined {
  try {
    return openIn(fd, "..", O_PATH | constants.O_DIRECTORY);
  } catch (error) {
    if (["EACCES", "ENOENT"].includes(errnoName(error) ?? "")) return undefined;
    throw error;
  }
}
