import { type BigIntStats, closeSync, constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { posix } from "node:path";
import { actingGuard } from "../../os/path-guard.js";
import { O_PATH, openIn, readLinkIn } from "../../os/root.js";
import { errnoName, systemError } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { openDirectoryMakingParents, removeMadeDirectories } from "./make-parents.js";

/** MAXSYMLINKS of Linux. */
const MAX_LINKS = 40;

/** The name that a write will give its content to, in an opened directory: no path is resolved twice. */
export interface WriteTarget {
  readonly directoryFd: number;
  readonly name: string;
  /** What has the name now. */
  readonly existing: BigIntStats | undefined;
  /** The path that was given was that of a link. */
  readonly followedLink: boolean;
  /** Directories that were made on the way, outermost first. */
  readonly madeDirectories: readonly string[];
}

/**
 * Follows symbolic links to the name that is to be written (a dangling link's target included) and makes missing parents. To be
 * called with the rights of the acting user; the caller closes `directoryFd`. @throws EISDIR, ELOOP, errno of open(2), mkdir(2).
 */
export function openWriteTarget(access: Access, path: string): WriteTarget {
  const madeDirectories: string[] = [];
  let current = path;
  try {
    for (let links = 0; links <= MAX_LINKS; links++) {
      const name = posix.basename(current);
      if (current.endsWith("/") || name === "." || name === "..") throw systemError("open", path, osConstants.errno.EISDIR);
      const directory = posix.dirname(current);
      const directoryFd = openDirectoryMakingParents(access, directory, madeDirectories);
      const found = lookUpOrClose(directoryFd, name);
      if (found?.linkTarget === undefined) {
        judgeTarget(directoryFd, name);
        return { directoryFd, name, existing: found?.stats, followedLink: links > 0, madeDirectories };
      }
      closeSync(directoryFd);
      assertMayFollow(access, current);
      current = found.linkTarget.startsWith("/") ? found.linkTarget : `${directory}/${found.linkTarget}`;
    }
    throw systemError("open", path, osConstants.errno.ELOOP);
  } catch (error) {
    removeMadeDirectories(access, madeDirectories);
    throw error;
  }
}

/** Before anything is sent: the name is judged again when it is given. */
function judgeTarget(directoryFd: number, name: string): void {
  try {
    actingGuard()?.assertName(directoryFd, name, "write");
  } catch (error) {
    closeSync(directoryFd);
    throw error;
  }
}

function lookUpOrClose(directoryFd: number, name: string) {
  try {
    return lookUp(directoryFd, name);
  } catch (error) {
    closeSync(directoryFd);
    throw error;
  }
}

/** The kernel refuses to follow some links, those of others in sticky directories for example (fs.protected_symlinks). */
export function assertMayFollow(access: Access, path: string): void {
  try {
    closeSync(access.root.open(path, O_PATH, 0, "pass"));
  } catch (error) {
    if (errnoName(error) !== "ENOENT") throw error;
  }
}

/** Describes a name of an opened directory; undefined when it is free. */
export function lookUp(directoryFd: number, name: string): { stats: BigIntStats; linkTarget: string | undefined } | undefined {
  let fd: number;
  try {
    fd = openIn(directoryFd, name, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoName(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const stats = fstatSync(fd, { bigint: true });
    return { stats, linkTarget: stats.isSymbolicLink() ? readLinkIn(fd, "") : undefined };
  } finally {
    closeSync(fd);
  }
}
