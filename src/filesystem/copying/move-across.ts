import { closeSync } from "node:fs";
import { constants } from "node:os";
import { posix } from "node:path";
import { assertMayChangeNames, type FileStats, isDirectory, isMountPoint, readNames, statIn } from "../../os/directory.js";
import { openIn } from "../../os/root.js";
import { systemError } from "../../os/system-error.js";
import type { Access } from "../access.js";
import type { Removal } from "../removing/remove-tree.js";
import { type Identity, OPEN_DIRECTORY } from "../walking/descent.js";
import type { Step } from "../walking/in-steps.js";
import { DataCopier } from "./copy-data.js";
import type { NamedFile } from "./copy-file.js";
import { type Onto, TreeCopy } from "./copy-tree.js";
import { naming } from "./naming.js";
import { lookAt, type Place } from "./place.js";
import { removeSteps } from "./remove-staged.js";

const STICKY = 0o1000n;

export interface Route {
  readonly from: Place;
  /** What is at `from`. */
  readonly stats: FileStats;
  readonly to: Place;
  readonly onto: Onto;
  /** What is never removed. */
  readonly rootIdentity: Identity;
}

/**
 * Moves to another file system: copies beside the destination, lets the copy take the name in one step, and removes the original. What would
 * keep the original from going is looked for on the way, while all can be undone. To be run by `inSteps`. @throws errno, with its path.
 */
export function* moveAcross(access: Access, route: Route, abortSignal: AbortSignal): Generator<Step, void, void> {
  const { from, stats, to, onto } = route;
  naming(from.path, () => assertRemovable(access, from, stats));
  if (onto === "replace") naming(to.path, () => assertReplaceable(to, stats));
  const assertCopied = (entry: NamedFile, entryStats: FileStats) => assertRemovable(access, entry, entryStats);
  yield* new TreeCopy(new DataCopier(abortSignal), from, to, onto, assertCopied).run(stats);
  yield* removeOriginal(route, abortSignal);
}

/** Too late to be cancelled: the copy has its name. */
function* removeOriginal({ from, rootIdentity }: Route, abortSignal: AbortSignal): Generator<Step, void, void> {
  const above = posix.dirname(from.path);
  const removal: Removal = { removed: 0, failure: undefined };
  const target = { directoryFd: from.directoryFd, name: from.name, rootIdentity };
  try {
    yield* removeSteps(target, above, removal);
  } catch (error) {
    if (!abortSignal.aborted) throw error;
    yield* removeSteps(target, above, removal);
  }
  const { failure } = removal;
  if (failure !== undefined) naming(failure.path, () => raise(failure.error));
}

/** What unlink(2) and rmdir(2) would refuse. @throws EBUSY, EACCES, EPERM, EROFS. */
function assertRemovable({ user }: Access, { directoryFd, name }: NamedFile, stats: FileStats): void {
  if (isMountPoint(directoryFd, name)) throw systemError("move", undefined, constants.errno.EBUSY);
  // The beginning was asked about by its name.
  if (name === ".") return;
  assertMayChangeNames(directoryFd);
  if (user.uid === 0) return;
  const { mode, uid } = statIn(directoryFd, ".");
  const isOwner = BigInt(user.uid) === uid || BigInt(user.uid) === stats.uid;
  if ((mode & STICKY) !== 0n && !isOwner) throw systemError("move", undefined, constants.errno.EPERM);
}

/** rename(2) would say so in the end: no need to copy everything before. */
function assertReplaceable(to: Place, stats: FileStats): void {
  const existing = lookAt(to);
  if (existing === undefined || !isDirectory(existing) || !isDirectory(stats)) return;
  const fd = openIn(to.directoryFd, to.name, OPEN_DIRECTORY);
  try {
    for (let names = readNames(fd); names !== undefined; names = readNames(fd)) {
      if (names.length > 0) throw systemError("move", undefined, constants.errno.ENOTEMPTY);
    }
  } finally {
    closeSync(fd);
  }
}

function raise(error: unknown): never {
  throw error;
}
