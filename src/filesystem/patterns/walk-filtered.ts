import { isTemporaryName } from "../../os/temporary-name.js";
import type { Unreadable } from "../walking/unreadable.js";
import { type WalkedEntry, walk } from "../walking/walk.js";
import { addIgnoreFiles, addIgnoreFilesOf } from "./ignore-files.js";
import type { PathFilter } from "./path-filter.js";

/**
 * Walks as `walk` does, but only goes into directories that the filter enters, reads the ignore files on the way when the filter wants them, and
 * leaves out hidden files of ours. What it yields is not filtered yet.
 */
export function* walkFiltered(
  directoryFd: number,
  filter: PathFilter,
  unreadable: Unreadable,
  maxDepth = Number.POSITIVE_INFINITY,
): Generator<WalkedEntry | undefined, void, void> {
  const onUnreadable = (relativePath: string, error: unknown) => unreadable.add(relativePath, error);
  const enters = (entry: WalkedEntry): boolean => {
    if (isTemporaryName(entry.name) || !filter.enters(entry.relativePath)) return false;
    if (filter.usesIgnoreFiles) addIgnoreFilesOf(filter, entry, onUnreadable);
    return true;
  };
  if (filter.usesIgnoreFiles) addIgnoreFiles(filter, directoryFd, "", onUnreadable);
  for (const entry of walk(directoryFd, { maxDepth, enters, onUnreadable })) {
    yield entry !== undefined && isTemporaryName(entry.name) ? undefined : entry;
  }
}
