import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { decodePath } from "./path-bytes.js";
import { errnoName } from "./system-error.js";

const DELETED = Buffer.from(" (deleted)");

/** Where what was opened really is. Not to be called with the rights of another user, who may not look at the daemon's descriptors. */
export function realPathOf(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`);
}

/** Where a path leads now; undefined where it leads nowhere, or that may not be seen. */
export function realPathIfAny(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return undefined;
  }
}

/**
 * As `realPathOf`, for a decision: undefined where there is no telling, as of what has no name any longer. The kernel says so behind the path, which
 * is also what a name may end in.
 */
export function knownPathOf(fd: number): string | undefined {
  const bytes = tryReadLink(fd);
  if (bytes?.[0] !== 0x2f) return undefined;
  if (bytes.subarray(-DELETED.length).equals(DELETED) && !isAt(bytes, fd)) return undefined;
  return decodePath(bytes);
}

/** Undefined for a path that is longer than the kernel tells. */
function tryReadLink(fd: number): Buffer | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`, "buffer");
  } catch (error) {
    if (errnoName(error) !== "ENAMETOOLONG") throw error;
    return undefined;
  }
}

function isAt(path: Buffer, fd: number): boolean {
  const own = fstatSync(fd, { bigint: true });
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found?.dev === own.dev && found.ino === own.ino;
}
