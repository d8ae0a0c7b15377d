import { hiddenName } from "../../os/hidden-name.js";
import { libc } from "../../os/libc.js";
import { encodePath } from "../../os/path-bytes.js";
import { actingGuard } from "../../os/path-guard.js";
import { removeDirectoryIn, unlinkIn } from "../../os/root.js";
import { check, errnoName } from "../../os/system-error.js";
import { discard, publish, type TemporaryFile } from "../../os/temporary-file.js";

/**
 * Creates an entry under a name, in place of whatever has it: then it is created under a hidden name and renamed, so that there is always
 * one of the two. An empty directory makes room, as for tar(1). @throws ENOTEMPTY, and what `create` throws.
 */
export function placeEntry(directoryFd: number, name: string, create: (name: string) => void): void {
  try {
    create(name);
    return;
  } catch (error) {
    if (errnoName(error) !== "EEXIST") throw error;
  }
  const hidden = hiddenName(name);
  create(hidden);
  try {
    replacing(directoryFd, name, () => check(libc.renameat(directoryFd, hidden, directoryFd, encodePath(name)), "rename", name));
  } finally {
    // Renaming over another name of the same file does nothing.
    unlinkIfThere(directoryFd, hidden);
    actingGuard()?.unstage(hidden);
  }
}

/** Gives a temporary file its name, in place of whatever has it. @throws ENOTEMPTY, EBUSY for a mount point. */
export function placeFile(file: TemporaryFile, name: string): void {
  try {
    publish(file, name, false);
    return;
  } catch (error) {
    if (errnoName(error) !== "EEXIST") throw error;
  }
  try {
    replacing(file.directoryFd, name, () => publish(file, name, true));
  } catch (error) {
    discard(file);
    throw error;
  }
}

function replacing(directoryFd: number, name: string, rename: () => void): void {
  try {
    rename();
  } catch (error) {
    if (errnoName(error) !== "EISDIR") throw error;
    removeDirectoryIn(directoryFd, name);
    rename();
  }
}

function unlinkIfThere(directoryFd: number, name: string): void {
  try {
    unlinkIn(directoryFd, name);
  } catch (error) {
    if (errnoName(error) !== "ENOENT") throw error;
  }
}
