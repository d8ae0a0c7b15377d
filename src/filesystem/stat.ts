import { closeSync, constants, fstatSync } from "node:fs";
import { readXattrs } from "../os/attributes.js";
import { withFileRightsOf } from "../os/credentials.js";
import { O_PATH, readLinkIn } from "../os/root.js";
import { withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo } from "./entry-info.js";

/**
 * Describes one entry: a symbolic link itself, or what it points to with `followSymlinks`; with `xattrs` its user xattrs too.
 * @throws errno of open(2), getxattr(2).
 */
export function stat(access: Access, path: string, followSymlinks: boolean, xattrs = false): EntryInfo {
  const flags = followSymlinks ? O_PATH : O_PATH | constants.O_NOFOLLOW;
  const fd = withFileRightsOf(access, () => access.root.open(path, flags));
  try {
    const entry = describeOpened(access, path, fd);
    return xattrs ? { ...entry, xattrs: withFileRightsOf(access, () => readXattrs(fd, "user.")) } : entry;
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(fd);
  }
}

/** Describes what was opened, with O_PATH too. */
export function describeOpened(access: Access, path: string, fd: number): EntryInfo {
  const stats = fstatSync(fd, { bigint: true });
  return describeEntry(path, stats, access.users, stats.isSymbolicLink() ? readLinkIn(fd, "") : undefined);
}
