import { constants } from "node:fs";
import { hiddenName } from "./hidden-name.js";
import { libc } from "./libc.js";
import { encodePath } from "./path-bytes.js";
import { actingGuard } from "./path-guard.js";
import { openUnjudged } from "./root.js";
import { check, errnoName } from "./system-error.js";

const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;
const AT_FDCWD = -100;
const AT_SYMLINK_FOLLOW = 0x400;
const RENAME_NOREPLACE = 1;

/**
 * A file that has no name until it is published, so that neither a listing nor a killed daemon shows half of one. Where the file
 * system cannot do that (O_TMPFILE: NFS, 9p) it has a hidden name of ours instead. All of it runs in one turn with the rights
 * that the caller has switched to.
 */
export interface TemporaryFile {
  readonly fd: number;
  readonly directoryFd: number;
  /** Hidden name, where it has one. */
  name: string | undefined;
}

/** @throws EACCES, EROFS, ENOSPC, … when nothing may be created in that directory. */
export function createTemporaryFile(directoryFd: number): TemporaryFile {
  actingGuard()?.assertMakesIn(directoryFd);
  try {
    const fd = openUnjudged(directoryFd, ".", O_TMPFILE | constants.O_RDWR, 0o600);
    return { fd, directoryFd, name: undefined };
  } catch (error) {
    if (!["EOPNOTSUPP", "EISDIR", "EINVAL", "ENOENT"].includes(errnoName(error) ?? "")) throw error;
  }
  const name = hiddenName(undefined);
  const fd = openUnjudged(directoryFd, name, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600);
  return { fd, directoryFd, name };
}

/**
 * Gives the file its name in one step. With `replace` whatever has the name is replaced.
 * @throws EEXIST when the name is taken and may not be replaced; EBUSY when it is a mount point.
 */
export function publish(file: TemporaryFile, name: string, replace: boolean): void {
  const { directoryFd } = file;
  actingGuard()?.assertName(directoryFd, name, "write");
  if (file.name === undefined && !replace) {
    link(file, name);
    return;
  }
  if (file.name === undefined) {
    const hidden = hiddenName(undefined);
    link(file, hidden);
    file.name = hidden;
  }
  const flags = replace ? 0 : RENAME_NOREPLACE;
  check(libc.renameat2(directoryFd, file.name, directoryFd, encodePath(name), flags), "rename", name);
  file.name = undefined;
}

/** Removes the hidden name, if there is one; the content goes with its last descriptor. */
export function discard(file: TemporaryFile): void {
  if (file.name === undefined) return;
  const { name } = file;
  file.name = undefined;
  check(libc.unlinkat(file.directoryFd, name, 0), "unlink", name);
}

function link(file: TemporaryFile, name: string): void {
  check(libc.linkat(AT_FDCWD, `/proc/self/fd/${file.fd}`, file.directoryFd, encodePath(name), AT_SYMLINK_FOLLOW), "link", name);
}
