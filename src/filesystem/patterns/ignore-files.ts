import { closeSync, constants, fstatSync, readSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { PicodError } from "../../errors/picod-error.js";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName, systemError } from "../../os/system-error.js";
import type { PathFilter } from "./path-filter.js";

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** A longer one is not read. */
const MAX_BYTES = 128 * 1024;
/** There is none, or something else has its name. A link is not followed, as git does not. */
const ABSENT = ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"];

type OnUnreadable = (relativePath: string, error: unknown) => void;

/**
 * Adds the rules of `.git/info/exclude` and `.gitignore` in an opened directory, whose path is "" at the beginning of a walk. To be called
 * with the rights of the acting user.
 */
export function addIgnoreFiles(filter: PathFilter, directoryFd: number, relativePath: string, onUnreadable: OnUnreadable): void {
  for (const file of [".git/info/exclude", ".gitignore"]) {
    const path = relativePath === "" ? file : `${relativePath}/${file}`;
    try {
      const content = readBelow(directoryFd, file.split("/"));
      if (content !== "") filter.addIgnoreFile(relativePath, content);
    } catch (error) {
      if (error instanceof RangeError) onUnreadable(path, tooBig(path));
      // What may not be read is not there.
      else if (error instanceof PicodError) continue;
      else if (errnoName(error) === undefined) throw error;
      else if (!ABSENT.includes(errnoName(error) ?? "")) onUnreadable(path, error);
    }
  }
}

/** As above for a directory that a walk is about to go into. */
export function addIgnoreFilesOf(
  filter: PathFilter,
  entry: { readonly directoryFd: number; readonly name: string; readonly relativePath: string },
  onUnreadable: OnUnreadable,
): void {
  let fd: number;
  try {
    fd = openIn(entry.directoryFd, entry.name, DIRECTORY);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    // The walk will say so.
    return;
  }
  try {
    addIgnoreFiles(filter, fd, entry.relativePath, onUnreadable);
  } finally {
    closeSync(fd);
  }
}

function readBelow(directoryFd: number, [name = "", ...below]: readonly string[]): string {
  const fd = openIn(directoryFd, name, below.length > 0 ? DIRECTORY : READ);
  try {
    return below.length > 0 ? readBelow(fd, below) : readRules(fd);
  } finally {
    closeSync(fd);
  }
}

/** As latin1. Empty when it is no file. @throws EFBIG. */
function readRules(fd: number): string {
  const stats = fstatSync(fd);
  if (!stats.isFile()) return "";
  if (stats.size > MAX_BYTES) throw tooBig();
  const content = Buffer.alloc(stats.size);
  let length = 0;
  for (let bytes = -1; bytes !== 0 && length < content.length; length += bytes)
    bytes = readSync(fd, content, length, content.length - length, null);
  return content.toString("latin1", 0, length);
}

function tooBig(path?: string): NodeJS.ErrnoException {
  return systemError("read", path, osConstants.errno.EFBIG);
}
