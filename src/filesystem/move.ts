import { closeSync } from "node:fs";
import { constants } from "node:os";
import { PicodError } from "../errors/picod-error.js";
import { type FileStats, isDirectory } from "../os/directory.js";
import { actingGuard } from "../os/path-guard.js";
import { type RenameMode, rename } from "../os/rename.js";
import { unlinkIn } from "../os/root.js";
import { errnoName, systemError, withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { describePlace } from "./copying/describe-place.js";
import { moveAcross } from "./copying/move-across.js";
import { isInside, lookAt, openPlace, type Place } from "./copying/place.js";
import type { EntryInfo } from "./entry-info.js";
import { rootProtected } from "./removing/remove-tree.js";
import { type Identity, identityOf, isSame } from "./walking/descent.js";
import { inSteps, type Step } from "./walking/in-steps.js";
import { removeMadeDirectories } from "./writing/make-parents.js";

/**
 * Renames a file, directory or symbolic link itself, and makes missing parents. In the file system that it is in this is one step; to another
 * one it is copied, which can be cancelled, and then removed. Returns what is at the new place.
 * @throws ROOT_PROTECTED, INVALID_ARGUMENT when a directory would be moved into itself; errno, with the path that it is about.
 */
export function move(
  access: Access,
  source: string,
  destination: string,
  mode: RenameMode,
  abortSignal: AbortSignal,
): Promise<EntryInfo> {
  return inSteps(access, steps(access, source, destination, mode, abortSignal), abortSignal);
}

function* steps(
  access: Access,
  source: string,
  destination: string,
  mode: RenameMode,
  abortSignal: AbortSignal,
): Generator<Step, EntryInfo, void> {
  const places: Place[] = [];
  const made: string[] = [];
  try {
    const from = openPlace(access, source);
    places.push(from);
    actingGuard()?.assertMoved(from);
    const rootIdentity = rootOf(access);
    const stats = lookAt(from);
    assertMovable(from, stats, rootIdentity);
    const to = openPlace(access, destination, mode === "exchange" ? undefined : made);
    places.push(to);
    actingGuard()?.assertName(to.directoryFd, to.name, "write");
    const existing = lookAt(to);
    if (existing !== undefined) assertMovable(to, existing, rootIdentity);
    if (destination.endsWith("/") && !isDirectory(stats)) throw systemError("move", destination, constants.errno.ENOTDIR);
    if (isInside(to, stats) || (mode === "exchange" && existing !== undefined && isInside(from, existing))) {
      throw new PicodError("INVALID_ARGUMENT", `cannot move ${source} to ${destination}: one is in the other`, {
        path: destination,
      });
    }
    if (!tryRename(from, to, mode)) {
      const onto = mode === "free" ? "free" : "replace";
      yield* moveAcross(access, { from, stats, to, onto, rootIdentity }, abortSignal);
    } else if (mode === "replace" && existing !== undefined && isSame(existing, stats)) dropOtherName(from, to);
    return describePlace(access, to);
  } catch (error) {
    // First: to remove them takes a descriptor.
    closeAll(places);
    removeMadeDirectories(access, made);
    throw error;
  } finally {
    closeAll(places);
  }
}

/** False when it would be another file system's. */
function tryRename(from: Place, to: Place, mode: RenameMode): boolean {
  try {
    rename(from, to, mode);
    return true;
  } catch (error) {
    if (errnoName(error) === "EXDEV" && mode !== "exchange") return false;
    throw withPath(Object.assign(error as Error, { syscall: "move" }), isAboutDestination(error) ? to.path : from.path);
  }
}

function isAboutDestination(error: unknown): boolean {
  return ["EEXIST", "ENOTEMPTY", "EISDIR", "ENOTDIR", "ENOSPC", "EDQUOT", "EMLINK", "ENAMETOOLONG", "EXDEV"].includes(
    errnoName(error) ?? "",
  );
}

/** rename(2) does nothing when both are names of one file; to have moved it, the old one must go. */
function dropOtherName(from: Place, to: Place): void {
  if (from.name === to.name && isSame(identityOf(from.directoryFd), identityOf(to.directoryFd))) return;
  const left = lookAt(from);
  if (left !== undefined && !isDirectory(left)) unlinkIn(from.directoryFd, from.name);
}

function rootOf(access: Access): Identity {
  const fd = access.root.openTop();
  try {
    return identityOf(fd);
  } finally {
    closeSync(fd);
  }
}

function assertMovable({ name, path }: Place, stats: FileStats | undefined, root: Identity): asserts stats is FileStats {
  if (stats === undefined) throw systemError("move", path, constants.errno.ENOENT);
  if (isSame(stats, root)) throw rootProtected(path);
  // As rename(2): what ends in dots has no name of its own.
  if (name === ".") throw systemError("move", path, constants.errno.EBUSY);
  if (path.endsWith("/") && !isDirectory(stats)) throw systemError("move", path, constants.errno.ENOTDIR);
}

function closeAll(places: Place[]): void {
  for (const { directoryFd } of places.splice(0)) closeSync(directoryFd);
}
