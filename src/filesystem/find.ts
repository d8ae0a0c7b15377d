import { closeSync } from "node:fs";
import { withFileRightsOf } from "../os/credentials.js";
import { withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo, type FileKind, kindOf } from "./entry-info.js";
import { PathFilter, type PathPatterns } from "./patterns/path-filter.js";
import { walkFiltered } from "./patterns/walk-filtered.js";
import { BATCH_ENTRIES, type FoundEntry, inParts, toFound } from "./walking/found-entries.js";
import { Unreadable, type UnreadableEntry } from "./walking/unreadable.js";
import { inTurns, openWalk, type WalkedEntry } from "./walking/walk.js";

export interface FindOptions {
  readonly patterns: PathPatterns;
  /** Empty: all. */
  readonly kinds: readonly FileKind[];
  /** Bytes, both included. Either makes other kinds than files no match. */
  readonly minSize: bigint | undefined;
  readonly maxSize: bigint | undefined;
  /** Last modified at or after. */
  readonly modifiedSinceNs: bigint | undefined;
  /** Last modified before. */
  readonly modifiedBeforeNs: bigint | undefined;
  /** 1 for the directory's own entries. */
  readonly maxDepth: number;
  /** Entries to report; the rest is counted. */
  readonly maxResults: number;
}

export type FindEvent =
  | { readonly kind: "entries"; readonly entries: readonly EntryInfo[] }
  | {
      readonly kind: "summary";
      readonly matched: number;
      readonly visited: number;
      readonly unreadableCount: number;
      readonly unreadable: readonly UnreadableEntry[];
    };

/**
 * Finds the entries below a directory that match all that is asked for: batches of them, then one summary. Hidden files of ours are left
 * out. @throws INVALID_ARGUMENT for a malformed pattern; errno of open(2).
 */
export async function* find(
  access: Access,
  path: string,
  options: FindOptions,
  abortSignal: AbortSignal,
): AsyncGenerator<FindEvent, void, void> {
  const filter = new PathFilter(options.patterns);
  const above = path.endsWith("/") ? path : `${path}/`;
  const unreadable = new Unreadable(above);
  let [matched, visited] = [0, 0];
  const take = (entry: WalkedEntry): FoundEntry | undefined => {
    visited++;
    if (!isWanted(entry, options, filter)) return undefined;
    if (++matched > options.maxResults) return undefined;
    return toFound(above, entry);
  };

  const fd = withFileRightsOf(access, () => openWalk(access, path));
  try {
    const steps = walkFiltered(fd, filter, unreadable, options.maxDepth);
    for await (const found of inTurns(access, steps, BATCH_ENTRIES, abortSignal, take)) {
      for (const part of inParts(found)) {
        const entries = part.map(({ path, stats, symlinkTarget }) => describeEntry(path, stats, access.users, symlinkTarget));
        yield { kind: "entries", entries };
      }
    }
    yield { kind: "summary", matched, visited, unreadableCount: unreadable.count, unreadable: unreadable.named };
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(fd);
  }
}

function isWanted({ relativePath, stats }: WalkedEntry, options: FindOptions, filter: PathFilter): boolean {
  const { kinds, minSize, maxSize, modifiedSinceNs, modifiedBeforeNs } = options;
  const kind = kindOf(stats);
  if (kinds.length > 0 && !kinds.includes(kind)) return false;
  if (minSize !== undefined && (kind !== "file" || stats.size < minSize)) return false;
  if (maxSize !== undefined && (kind !== "file" || stats.size > maxSize)) return false;
  if (modifiedSinceNs !== undefined && stats.mtimeNs < modifiedSinceNs) return false;
  if (modifiedBeforeNs !== undefined && stats.mtimeNs >= modifiedBeforeNs) return false;
  return filter.includes(relativePath, kind === "directory");
}
