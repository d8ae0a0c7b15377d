import { closeSync, constants } from "node:fs";
import { constants as osConstants } from "node:os";
import { posix } from "node:path";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { isDirectory, statIn } from "../os/directory.js";
import { actingGuard } from "../os/path-guard.js";
import { O_PATH, removeDirectoryIn } from "../os/root.js";
import { errnoName, systemError, withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { type Removal, removeTree, rootProtected } from "./removing/remove-tree.js";
import { Unlinker } from "./removing/unlinker.js";
import { type Identity, identityOf, isSame } from "./walking/descent.js";
import { inTurns } from "./walking/walk.js";

export interface RemoveOptions {
  /** A directory with all that is in it. */
  readonly recursive?: boolean;
  /** That there is no such file is no error. */
  readonly missingOk?: boolean;
}

interface Target {
  readonly directoryFd: number;
  readonly name: string;
  readonly rootIdentity: Identity;
}

/**
 * Removes a file, a link itself, or a directory, and says how many of them went. What cannot be removed does not keep the rest: the
 * first of it is what the error is about.
 * @throws ROOT_PROTECTED for `/` and the `--root`, INVALID_PATH for another path that ends in dots, errno of unlink(2), rmdir(2).
 */
export async function remove(
  access: Access,
  path: string,
  { recursive = false, missingOk = false }: RemoveOptions,
  abortSignal: AbortSignal,
): Promise<number> {
  const removal: Removal = { removed: 0, failure: undefined };
  let target: Target | undefined;
  try {
    target = withFileRightsOf(access, () => openTarget(access, path, recursive));
    const steps = recursive ? removeTree(target, posix.dirname(path), removal) : removeOne(target, removal);
    for await (const [wait] of inTurns(access, steps, 1, abortSignal, (promise) => promise)) await wait;
  } catch (error) {
    if (missingOk && errnoName(error) === "ENOENT") return removal.removed;
    throw withPath(error, path);
  } finally {
    if (target !== undefined) closeSync(target.directoryFd);
  }
  const { failure } = removal;
  if (failure !== undefined) throw withPath(failure.error, failure.path);
  return removal.removed;
}

function* removeOne({ directoryFd, name }: Target, removal: Removal): Generator<Promise<unknown>, void, void> {
  const stats = statIn(directoryFd, name);
  const unlinker = new Unlinker();
  if (isDirectory(stats)) removeDirectoryIn(directoryFd, name);
  else unlinker.unlink(directoryFd, name, stats);
  removal.removed++;
  yield unlinker.allClosed();
}

/** Opens the directory that holds the name. The last name itself is never followed. */
function openTarget(access: Access, path: string, recursive: boolean): Target {
  const rootFd = access.root.openTop();
  const rootIdentity = identityOf(rootFd);
  closeSync(rootFd);
  const name = posix.basename(path);
  if (name === "" || name === "." || name === "..") throw unnamed(access, path, rootIdentity);
  const directoryFd = access.root.open(posix.dirname(path), O_PATH | constants.O_DIRECTORY, 0, "pass");
  try {
    judgeRemoval(directoryFd, name, recursive);
    const stats = statIn(directoryFd, name);
    if (isSame(stats, rootIdentity)) throw rootProtected(path);
    if (path.endsWith("/") && !isDirectory(stats)) throw systemError("unlink", path, osConstants.errno.ENOTDIR);
    return { directoryFd, name, rootIdentity };
  } catch (error) {
    closeSync(directoryFd);
    throw error;
  }
}

/** All of a tree, or nothing: each name is judged again when it goes. */
function judgeRemoval(directoryFd: number, name: string, recursive: boolean): void {
  const guard = actingGuard();
  if (guard === undefined) return;
  guard.assertName(directoryFd, name, "write");
  if (recursive) guard.assertTree({ directoryFd, name }, "write", isDirectory(statIn(directoryFd, name)));
}

/** As rm(1) and rmdir(2): what ends in dots is refused, and so is `/`. */
function unnamed(access: Access, path: string, rootIdentity: Identity): Error {
  const fd = access.root.open(path, O_PATH, 0, "pass");
  try {
    if (isSame(identityOf(fd), rootIdentity)) return rootProtected(path);
    return new PicodError("INVALID_PATH", `cannot remove ${path}: name the directory itself instead of ending in dots`, { path });
  } finally {
    closeSync(fd);
  }
}
