import { closeSync } from "node:fs";
import { constants } from "node:os";
import { PicodError } from "../errors/picod-error.js";
import { isDirectory } from "../os/directory.js";
import { actingGuard } from "../os/path-guard.js";
import { systemError } from "../os/system-error.js";
import type { Access } from "./access.js";
import { DataCopier } from "./copying/copy-data.js";
import { TreeCopy } from "./copying/copy-tree.js";
import { describePlace } from "./copying/describe-place.js";
import { isInside, lookAt, openPlace, type Place } from "./copying/place.js";
import type { EntryInfo } from "./entry-info.js";
import { isSame } from "./walking/descent.js";
import { inSteps, type Step } from "./walking/in-steps.js";
import { removeMadeDirectories } from "./writing/make-parents.js";

export interface CopyOptions {
  /** The destination's name must be free. */
  readonly mustNotExist?: boolean;
}

export interface CopyResult {
  /** The copy. */
  readonly entry: EntryInfo;
  /** Files, directories and links that were copied. */
  readonly entries: bigint;
  /** Bytes of the files among them. */
  readonly bytes: bigint;
}

/**
 * Copies a file, a symbolic link itself or a directory with all that is in it, and makes missing parents. What did not exist appears as a
 * whole; a directory that exists is merged into, and keeps its own attributes. After an error all is as it was, but for what was merged.
 * @throws INVALID_ARGUMENT when it would be copied into or onto itself; errno, with the path that it is about.
 */
export function copy(
  access: Access,
  source: string,
  destination: string,
  { mustNotExist = false }: CopyOptions,
  abortSignal: AbortSignal,
): Promise<CopyResult> {
  return inSteps(access, steps(access, source, destination, mustNotExist, new DataCopier(abortSignal)), abortSignal);
}

function* steps(
  access: Access,
  source: string,
  destination: string,
  mustNotExist: boolean,
  data: DataCopier,
): Generator<Step, CopyResult, void> {
  const places: Place[] = [];
  const made: string[] = [];
  try {
    const from = openPlace(access, source);
    places.push(from);
    actingGuard()?.assertName(from.directoryFd, from.name, "read");
    const stats = lookAt(from);
    if (stats === undefined) throw systemError("stat", source, constants.errno.ENOENT);
    if (source.endsWith("/") && !isDirectory(stats)) throw systemError("open", source, constants.errno.ENOTDIR);
    const to = openPlace(access, destination, made);
    places.push(to);
    actingGuard()?.assertName(to.directoryFd, to.name, "write");
    const existing = lookAt(to);
    if (isInside(to, stats) || (existing !== undefined && isSame(existing, stats))) {
      throw new PicodError("INVALID_ARGUMENT", `cannot copy ${source} to ${destination}: that is itself`, { path: destination });
    }
    if (destination.endsWith("/") && !isDirectory(stats)) throw systemError("open", destination, constants.errno.ENOTDIR);
    const tree = new TreeCopy(data, from, to, mustNotExist ? "free" : "merge", () => undefined);
    yield* tree.run(stats);
    return { entry: describePlace(access, to), entries: tree.entries, bytes: tree.bytes };
  } catch (error) {
    // First: to remove them takes a descriptor.
    closeAll(places);
    removeMadeDirectories(access, made);
    throw error;
  } finally {
    closeAll(places);
  }
}

function closeAll(places: Place[]): void {
  for (const { directoryFd } of places.splice(0)) closeSync(directoryFd);
}
