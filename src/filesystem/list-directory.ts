import { closeSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { describeErrno, errnoName, withPath } from "../os/system-error.js";
import { isTemporaryName } from "../os/temporary-name.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo } from "./entry-info.js";
import { BATCH_ENTRIES, type FoundEntry, inParts, toFound } from "./walking/found-entries.js";
import type { UnreadableEntry } from "./walking/unreadable.js";
import { inTurns, openWalk, type WalkedEntry, walk } from "./walking/walk.js";

export interface ListedEntries {
  readonly entries: readonly EntryInfo[];
  readonly unreadable: readonly UnreadableEntry[];
}

/**
 * Lists what is below a directory in batches, by the bytes of the names, each directory before what is in it. Entries that vanish
 * meanwhile are left out, and so are hidden files of ours. @param depth 1 for the directory's own entries; 0 is no limit.
 * @throws errno of open(2), getdents64(2).
 */
export async function* listDirectory(
  access: Access,
  path: string,
  depth: number,
  abortSignal: AbortSignal,
): AsyncGenerator<ListedEntries, void, void> {
  const above = path.endsWith("/") ? path : `${path}/`;
  let fd: number | undefined;
  try {
    fd = withFileRightsOf(access, () => openWalk(access, path));
    const steps = walkAndUnreadable(fd, above, depth === 0 ? Number.POSITIVE_INFINITY : depth);
    // Hidden files of ours are left out.
    const take = (step: WalkedEntry | UnreadableEntry) =>
      "reason" in step ? step : isTemporaryName(step.name) ? undefined : toFound(above, step);
    for await (const found of inTurns(access, steps, BATCH_ENTRIES, abortSignal, take)) {
      for (const part of inParts(found)) {
        const entries = part.filter((each): each is FoundEntry => "stats" in each);
        yield {
          entries: entries.map(({ path, stats, symlinkTarget }) => describeEntry(path, stats, access.users, symlinkTarget)),
          unreadable: part.filter((each): each is UnreadableEntry => "reason" in each),
        };
      }
    }
  } catch (error) {
    throw withPath(error, path);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** What is passed over comes in between as it is met, so that no number of it is kept. */
function* walkAndUnreadable(fd: number, above: string, maxDepth: number): Generator<WalkedEntry | UnreadableEntry | undefined> {
  const unreadable: UnreadableEntry[] = [];
  const steps = walk(fd, {
    maxDepth,
    enters: ({ name }) => !isTemporaryName(name),
    onUnreadable: (relativePath, error) => unreadable.push(toUnreadable(above + relativePath, error)),
  });
  for (const step of steps) {
    yield* unreadable.splice(0);
    yield step;
  }
  yield* unreadable;
}

export function toUnreadable(path: string, error: unknown): UnreadableEntry {
  const reason = error instanceof PicodError ? error.reason : (errnoName(error) ?? "");
  return { path, reason, message: describeErrno(error as NodeJS.ErrnoException) };
}
