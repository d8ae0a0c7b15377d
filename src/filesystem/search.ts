import { closeSync, constants, fstatSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { openIn } from "../os/root.js";
import { errnoName, systemError, withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { kindOf } from "./entry-info.js";
import { PathFilter, type PathPatterns } from "./patterns/path-filter.js";
import { walkFiltered } from "./patterns/walk-filtered.js";
import type { LineMatch, SearchTotals } from "./searching/line-searcher.js";
import { type SearchAnswer, SearchThread, type SearchThreadOptions } from "./searching/search-thread.js";
import type { Slots } from "./searching/slots.js";
import { Unreadable, type UnreadableEntry } from "./walking/unreadable.js";
import { inTurns, type WalkedEntry } from "./walking/walk.js";

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
/** Files that are open at once, twice: while some are searched, the next are opened. */
const BATCH_FILES = 32;
/** What has its name is gone, or something else by now. */
const VANISHED = ["ENOENT", "ELOOP", "ENXIO"];
const SCARCE = ["EMFILE", "ENFILE", "ENOMEM"];

export interface SearchOptions extends SearchThreadOptions {
  readonly patterns: PathPatterns;
}

export type SearchEvent =
  | { readonly kind: "match"; readonly path: string; readonly match: LineMatch }
  | {
      readonly kind: "summary";
      readonly totals: SearchTotals;
      readonly unreadableCount: number;
      readonly unreadable: readonly UnreadableEntry[];
    };

interface OpenFile {
  readonly fd: number;
  /** Below where the search began. */
  readonly relativePath: string;
}

/**
 * Searches a file, or the files below a directory that the filter wants, line by line: matches in the order of the walk, then one summary. Opening
 * is done here with the user's rights, reading and matching on a thread of its own.
 * @throws INVALID_ARGUMENT for a malformed pattern; NOT_A_REGULAR_FILE; errno of open(2).
 */
export async function* search(
  access: Access,
  path: string,
  options: SearchOptions,
  slots: Slots,
  abortSignal: AbortSignal,
): AsyncGenerator<SearchEvent, void, void> {
  const { patterns, ...threadOptions } = options;
  const filter = new PathFilter(patterns);
  using _slot = await slots.take(abortSignal);
  const fd = withFileRightsOf(access, () => access.root.open(path, READ));
  const open = new Set([fd]);
  try {
    const kind = kindOf(fstatSync(fd, { bigint: true }));
    if (kind !== "file" && kind !== "directory") {
      throw new PicodError("NOT_A_REGULAR_FILE", `cannot search ${path}: it is a ${kind}`, { path });
    }
    const above = kind === "file" || path.endsWith("/") ? path : `${path}/`;
    const unreadable = new Unreadable(above);
    const files = kind === "file" ? one({ fd, relativePath: "" }) : openBelow(access, fd, filter, open, unreadable, abortSignal);
    let totals: SearchTotals | undefined;
    // Ends before the descriptors are closed, whose numbers would be others' then.
    await using thread = new SearchThread(threadOptions, abortSignal);
    for await (const { batch, answer } of askAhead(thread, files)) {
      for (const { file, match } of answer.matches) yield { kind: "match", path: above + batch[file]?.relativePath, match };
      for (const { file, errno } of answer.unreadable) {
        unreadable.add(batch[file]?.relativePath ?? "", systemError("read", undefined, errno));
      }
      ({ totals } = answer);
      if (answer.done) closeAll(open, batch);
    }
    totals ??= (await thread.ask([])).totals;
    yield { kind: "summary", totals, unreadableCount: unreadable.count, unreadable: unreadable.named };
  } catch (error) {
    throw withPath(error, path);
  } finally {
    for (const each of open) closeSync(each);
  }
}

/** Asks about one batch while the next is being opened, in order. */
async function* askAhead(
  thread: SearchThread,
  batches: AsyncIterable<readonly OpenFile[]>,
): AsyncGenerator<{ batch: readonly OpenFile[]; answer: SearchAnswer }, void, void> {
  let asked: { batch: readonly OpenFile[]; answer: Promise<SearchAnswer> } | undefined;
  const finish = async function* () {
    if (asked === undefined) return;
    const { batch } = asked;
    let answer = await asked.answer;
    yield { batch, answer };
    while (!answer.done) {
      answer = await thread.ask();
      yield { batch, answer };
    }
  };
  for await (const batch of batches) {
    yield* finish();
    asked = { batch, answer: thread.ask(batch.map(({ fd }) => fd)) };
    // It is looked at when the next batch is open.
    asked.answer.catch(() => undefined);
  }
  yield* finish();
}

async function* one(file: OpenFile): AsyncGenerator<readonly OpenFile[], void, void> {
  yield [file];
}

/** Opens the files that are wanted, some at a time; `open` gets their descriptors. */
function openBelow(
  access: Access,
  directoryFd: number,
  filter: PathFilter,
  open: Set<number>,
  unreadable: Unreadable,
  abortSignal: AbortSignal,
): AsyncGenerator<readonly OpenFile[], void, void> {
  const take = ({ directoryFd, name, relativePath, stats }: WalkedEntry): OpenFile | undefined => {
    if (kindOf(stats) !== "file" || !filter.includes(relativePath, false)) return undefined;
    try {
      const fd = openIn(directoryFd, name, READ);
      open.add(fd);
      return { fd, relativePath };
    } catch (error) {
      const errno = error instanceof PicodError ? error.reason : (errnoName(error) ?? "");
      if (errno === "" || SCARCE.includes(errno)) throw error;
      if (!VANISHED.includes(errno)) unreadable.add(relativePath, error);
      return undefined;
    }
  };
  return inTurns(access, walkFiltered(directoryFd, filter, unreadable), BATCH_FILES, abortSignal, take);
}

function closeAll(open: Set<number>, files: readonly OpenFile[]): void {
  for (const { fd } of files) {
    open.delete(fd);
    closeSync(fd);
  }
}
