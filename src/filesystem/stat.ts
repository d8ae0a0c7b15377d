import { closeSync, constants, fstatSync } from "node:fs";
import { withFileRightsOf } from "../os/credentials.js";
import { O_PATH, readLinkIn } from "../os/root.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo } from "./entry-info.js";

/** Describes one entry: a symbolic link itself, or what it points to with `followSymlinks`. @throws errno of open(2). */
export function stat(access: Access, path: string, followSymlinks: boolean): EntryInfo {
  const flags = followSymlinks ? O_PATH : O_PATH | constants.O_NOFOLLOW;
  const fd = withFileRightsOf(access.user, () => access.root.open(path, flags));
  try {
    const stats = fstatSync(fd, { bigint: true });
    return describeEntry(path, stats, access.users, stats.isSymbolicLink() ? readLinkIn(fd, "") : undefined);
  } finally {
    closeSync(fd);
  }
}
