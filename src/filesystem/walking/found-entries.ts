import { type FileStats, isSymbolicLink } from "../../os/directory.js";
import { readLinkIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import type { WalkedEntry } from "./walk.js";

/** What a walk takes in one turn: more are sent at once neither sooner nor cheaper. */
export const BATCH_ENTRIES = 256;
/** Of the paths in one batch: deep below they are long, and a message has a limit. */
const BATCH_PATH_LENGTH = 128 * 1024;

/** An entry that a walk has come to, kept beyond its turn. */
export interface FoundEntry {
  readonly path: string;
  readonly stats: FileStats;
  readonly symlinkTarget: string | undefined;
}

/** @param above the path where the walk began, with its slash. */
export function toFound(above: string, { relativePath, name, directoryFd, stats }: WalkedEntry): FoundEntry {
  return { path: above + relativePath, stats, symlinkTarget: isSymbolicLink(stats) ? tryReadLink(directoryFd, name) : undefined };
}

/** Parts of a batch that are small enough for one message. */
export function* inParts<T extends { readonly path: string }>(found: readonly T[]): Generator<readonly T[], void, void> {
  let [from, length] = [0, 0];
  for (const [at, { path }] of found.entries()) {
    length += path.length;
    if (at > from && length > BATCH_PATH_LENGTH) {
      yield found.slice(from, at);
      [from, length] = [at, path.length];
    }
  }
  if (found.length > from) yield found.slice(from);
}

/** Undefined when it is a link no longer. */
function tryReadLink(directoryFd: number, name: string): string | undefined {
  try {
    return readLinkIn(directoryFd, name);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return undefined;
  }
}
