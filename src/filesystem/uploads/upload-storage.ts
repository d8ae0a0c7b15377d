import { close, closeSync, constants, fstatSync } from "node:fs";
import { withFileRightsOf } from "../../os/credentials.js";
import { guardedBy } from "../../os/path-guard.js";
import { O_PATH, Root } from "../../os/root.js";
import { errnoName, withPath } from "../../os/system-error.js";
import { createTemporaryFile, discard, type TemporaryFile } from "../../os/temporary-file.js";
import type { Access } from "../access.js";
import { removeMadeDirectories } from "../writing/make-parents.js";
import { assertWritableKind, type Owner, openExisting, tryTemporary } from "../writing/write-destination.js";
import { openWriteTarget, type WriteTarget } from "../writing/write-target.js";

/** Where content waits that is to replace a file in a directory in which the user may not create. */
const SCRATCH = "/tmp";

/**
 * Where the parts of an upload go: a nameless file in the target's directory, so that it can take the name in the end and a killed
 * daemon leaves nothing. It holds one descriptor.
 */
export interface UploadStorage {
  readonly fd: number;
  /** Set where the file system knows no nameless files: the file with its hidden name, and the directory of that, kept open. */
  readonly hidden: TemporaryFile | undefined;
  /** The directory that it was made in. */
  readonly directory: { readonly dev: bigint; readonly ino: bigint };
  /** As it was made. */
  readonly owner: Owner;
  readonly madeDirectories: readonly string[];
  /** A nameless file can be given a name once: false when it had one. */
  linkable: boolean;
}

/** @throws NOT_A_REGULAR_FILE, errno with the path: of what the user could not write. */
export function openUploadStorage(access: Access, path: string): UploadStorage {
  return withFileRightsOf(access, () => {
    let target: WriteTarget | undefined;
    try {
      target = openWriteTarget(access, path);
      assertMayWrite(path, target);
      const file = createFor(access, target);
      if (file.directoryFd !== target.directoryFd) closeSync(target.directoryFd);
      return asStorage(file, target.madeDirectories);
    } catch (error) {
      if (target !== undefined) {
        closeSync(target.directoryFd);
        removeMadeDirectories(access, target.madeDirectories);
      }
      throw withPath(error, path);
    }
  });
}

/** Removes what is left of it. To be called when nothing is reading or writing it any longer. */
export function closeUploadStorage(storage: UploadStorage): void {
  if (storage.hidden !== undefined) closeSync(storage.hidden.directoryFd);
  // Freeing the blocks of a large file takes time: not on the event loop.
  close(storage.fd, () => undefined);
}

/** Removes the names that it has and, as far as they are empty, the directories that were made for it. */
export function removeUploadNames(access: Access, storage: UploadStorage): void {
  withFileRightsOf(access, () => {
    if (storage.hidden !== undefined) discard(storage.hidden);
    removeMadeDirectories(access, storage.madeDirectories);
  });
}

/** The user may write what is there already, or hears so before the first byte. */
function assertMayWrite(path: string, target: WriteTarget): void {
  if (target.existing === undefined) return;
  assertWritableKind(path, target.existing);
  const fd = openExisting(target);
  if (fd !== undefined) closeSync(fd);
}

/**
 * In the target's directory, or else in a scratch directory, which is opened for it: the root's own, or the machine's where the root has
 * none. A file without a name does not show there.
 */
function createFor(access: Access, { directoryFd, existing }: WriteTarget): TemporaryFile {
  const file = tryTemporary(directoryFd, existing !== undefined);
  if (file !== undefined) return file;
  // It is judged where it is to go.
  const scratchFd = openScratch(access);
  try {
    return guardedBy(undefined, () => createTemporaryFile(scratchFd));
  } catch (error) {
    closeSync(scratchFd);
    throw error;
  }
}

function openScratch({ root }: Access): number {
  try {
    return root.open(SCRATCH, O_PATH | constants.O_DIRECTORY, 0, "resolve");
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "EACCES"].includes(errnoName(error) ?? "")) throw error;
    return new Root("/").open(SCRATCH, O_PATH | constants.O_DIRECTORY);
  }
}

/** Of the directory only a hidden name needs to be held on to. */
function asStorage(file: TemporaryFile, madeDirectories: readonly string[]): UploadStorage {
  const { dev, ino } = fstatSync(file.directoryFd, { bigint: true });
  const { uid, gid } = fstatSync(file.fd, { bigint: true });
  const hidden = file.name === undefined ? undefined : file;
  if (hidden === undefined) closeSync(file.directoryFd);
  return { fd: file.fd, hidden, directory: { dev, ino }, owner: { uid, gid }, madeDirectories, linkable: true };
}
