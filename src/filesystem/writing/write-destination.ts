import { type BigIntStats, closeSync, constants, fchownSync, fstatSync, ftruncateSync, statfsSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { PicodError } from "../../errors/picod-error.js";
import { openIn } from "../../os/root.js";
import { errnoName, systemError } from "../../os/system-error.js";
import { createTemporaryFile, type TemporaryFile } from "../../os/temporary-file.js";
import { kindOf } from "../entry-info.js";
import type { WriteTarget } from "./write-target.js";

/**
 * Where the bytes of a write go.
 *  - `rename`: a temporary file that takes the name at the end. The rule.
 *  - `copy`: a temporary file that is copied over the existing one at the end, where renaming would break something: a hard link,
 *    an owner that cannot be kept, a mount point.
 *  - `in-place`: the existing file itself: a patch, a device, a directory in which the user may not create.
 */
export interface WriteDestination {
  readonly way: "rename" | "copy" | "in-place";
  /** Takes the bytes. */
  readonly fd: number;
  readonly temporary: TemporaryFile | undefined;
  /** The existing file, opened for writing: proof that the user may; undefined when there is none, or while it is executed. */
  readonly existingFd: number | undefined;
}

/** @throws NOT_A_REGULAR_FILE, OFFSET_BEYOND_END, NO_SPACE, errno of open(2). To be called with the rights of the acting user. */
export function openDestination(
  path: string,
  target: WriteTarget,
  offset: bigint | undefined,
  size: bigint | undefined,
): WriteDestination {
  const { existing, directoryFd } = target;
  if (existing !== undefined) assertWritableKind(path, existing);
  assertRoom(path, directoryFd, existing, offset ?? 0n, size);
  if (offset !== undefined) return openPatch(path, target, offset);
  const existingFd = existing && openExisting(target);
  if (existing !== undefined && !existing.isFile()) return inPlace(existingFd);
  const temporary = tryTemporaryOrClose(directoryFd, existingFd);
  if (temporary === undefined) {
    if (existing !== undefined && existingFd !== undefined) ftruncateSync(existingFd);
    return inPlace(existingFd);
  }
  const renames = existing === undefined || (existing.nlink === 1n && takeOwner(temporary.fd, existing));
  return { way: renames ? "rename" : "copy", fd: temporary.fd, temporary, existingFd };
}

/**
 * Where complete content goes, which waits in the file of `fd`: `temporary` when that can take a name beside the target. A device, and
 * a file that has to keep its inode, is copied over. @throws NOT_A_REGULAR_FILE, errno of open(2). With the rights of the acting user.
 */
export function openDestinationOf(
  path: string,
  target: WriteTarget,
  fd: number,
  owner: Owner,
  temporary: TemporaryFile | undefined,
): WriteDestination {
  const { existing } = target;
  if (existing !== undefined) assertWritableKind(path, existing);
  const existingFd = existing && openExisting(target);
  // What a failed commit has given to the owner of a file that is gone by now comes back.
  const renames = temporary !== undefined && mayBeReplaced(existing) && takeOwner(fd, existing ?? owner);
  return { way: renames ? "rename" : "copy", fd, temporary, existingFd };
}

/** Whether another inode may have the name: not that of a device, nor of a file with other names. */
export function mayBeReplaced(existing: BigIntStats | undefined): boolean {
  return existing === undefined || (existing.isFile() && existing.nlink === 1n);
}

function inPlace(existingFd: number | undefined): WriteDestination {
  if (existingFd === undefined) throw systemError("open", undefined, osConstants.errno.ETXTBSY);
  return { way: "in-place", fd: existingFd, temporary: undefined, existingFd };
}

function openPatch(path: string, target: WriteTarget, offset: bigint): WriteDestination {
  const size = target.existing?.size ?? 0n;
  if (offset > size)
    throw new PicodError("OFFSET_BEYOND_END", `cannot write ${path}: offset ${offset} is beyond its ${size} bytes`, { path });
  const created = target.existing === undefined;
  const flags =
    constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY | (created ? constants.O_CREAT | constants.O_EXCL : 0);
  return inPlace(openIn(target.directoryFd, target.name, flags, 0o644));
}

/** Who a file belongs to. */
export type Owner = Pick<BigIntStats, "uid" | "gid">;

/** Undefined for a program that is being executed, which may be replaced but not written. */
export function openExisting(target: WriteTarget): number | undefined {
  try {
    return openIn(target.directoryFd, target.name, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if (errnoName(error) === "ETXTBSY") return undefined;
    throw error;
  }
}

function tryTemporaryOrClose(directoryFd: number, existingFd: number | undefined): TemporaryFile | undefined {
  try {
    return tryTemporary(directoryFd, existingFd !== undefined);
  } catch (error) {
    if (existingFd !== undefined) closeSync(existingFd);
    throw error;
  }
}

/** Undefined where the user may write the existing file but not create others beside it. */
export function tryTemporary(directoryFd: number, exists: boolean): TemporaryFile | undefined {
  try {
    return createTemporaryFile(directoryFd);
  } catch (error) {
    if (exists && ["EACCES", "EPERM"].includes(errnoName(error) ?? "")) return undefined;
    throw error;
  }
}

/** Gives the new file the owner of the one it replaces; false when the user may not. */
function takeOwner(fd: number, existing: Owner): boolean {
  const own = fstatSync(fd, { bigint: true });
  if (own.uid === existing.uid && own.gid === existing.gid) return true;
  try {
    fchownSync(fd, Number(existing.uid), Number(existing.gid));
    return true;
  } catch (error) {
    if (errnoName(error) === "EPERM") return false;
    throw error;
  }
}

export function assertWritableKind(path: string, existing: BigIntStats): void {
  const kind = kindOf(existing);
  if (kind === "directory" || kind === "socket" || kind === "fifo") {
    throw new PicodError("NOT_A_REGULAR_FILE", `cannot write ${path}: it is a ${kind}`, { path, kind });
  }
}

/** Refuses what cannot fit before it is sent. The old content stays until the new one is complete, so both need room. */
function assertRoom(
  path: string,
  directoryFd: number,
  existing: BigIntStats | undefined,
  offset: bigint,
  size: bigint | undefined,
): void {
  if (size === undefined || size === 0n || (existing !== undefined && !existing.isFile())) return;
  const reused = offset > 0n && existing !== undefined ? existing.size - offset : 0n;
  assertFree(path, directoryFd, size - reused);
}

/** @throws NO_SPACE when so many bytes do not fit into the file system of an opened file. */
export function assertFree(path: string, fd: number, bytes: bigint): void {
  const { bavail, bsize } = statfsSync(`/proc/self/fd/${fd}`, { bigint: true });
  if (bsize === 0n || bytes <= bavail * bsize) return;
  throw new PicodError("NO_SPACE", `cannot write ${path}: ${bytes} bytes do not fit, ${bavail * bsize} are free`, { path });
}
