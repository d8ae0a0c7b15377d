import { setImmediate as nextTurn } from "node:timers/promises";
import { PicodError } from "../../errors/picod-error.js";
import { withFileRightsOf } from "../../os/credentials.js";
import { type FileStats, isDirectory, readNames, statIn } from "../../os/directory.js";
import { decodePath } from "../../os/path-bytes.js";
import { actingGuard } from "../../os/path-guard.js";
import { errnoName } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { Descent, OPEN_DIRECTORY } from "./descent.js";
import { SortedNames } from "./sorted-names.js";

/** An entry as a walk comes to it. */
export interface WalkedEntry {
  /** Below the directory where the walk began, without a slash before it. */
  readonly relativePath: string;
  readonly name: string;
  /** Its directory; open until the walk goes on. */
  readonly directoryFd: number;
  /** Of the entry itself: symbolic links are not followed. */
  readonly stats: FileStats;
  /** 1 for what is right below the beginning. */
  readonly depth: number;
}

export interface WalkOptions {
  /** How deep to go; without a limit by default. */
  readonly maxDepth?: number;
  /** Whether to go into a directory; into all by default. */
  readonly enters?: (entry: WalkedEntry) => boolean;
  /** Whether the acting guard hides entries; it does by default. */
  readonly hides?: boolean;
  /** Called for an entry that the acting guard does not show; passed over by default. */
  readonly onHidden?: (directoryFd: number, name: string) => void;
  /** Called for directories below the beginning that cannot be read, and entries that cannot be described. */
  readonly onUnreadable: (relativePath: string, error: unknown) => void;
}

/** A directory that the walk has gone into. */
interface Level {
  readonly relativePath: string;
  readonly names: SortedNames;
}

/**
 * Walks what is below an opened directory: depth first, names in the order of their bytes, each directory before what is in it. It
 * goes from descriptor to descriptor and never follows a link, so nobody can lead it elsewhere, and neither depth nor breadth cost
 * descriptors or time. Entries that vanish meanwhile are left out, and so are those that the acting guard hides. Undefined means that some work was done without coming to an
 * entry. To be called with the rights of the acting user, in turns: see `inTurns`. The descriptor stays the caller's.
 * @throws errno of getdents64(2) for the beginning itself.
 */
export function* walk(directoryFd: number, options: WalkOptions): Generator<WalkedEntry | undefined, void, void> {
  const { maxDepth = Number.POSITIVE_INFINITY } = options;
  const guard = options.hides === false ? undefined : actingGuard();
  const descent = new Descent(directoryFd);
  try {
    const levels: Level[] = [{ relativePath: "", names: yield* readSorted(directoryFd) }];
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const taken = level.names.take();
      if (taken === undefined) {
        goUp(descent, levels, options);
        yield undefined;
        continue;
      }
      const name = decodePath(taken);
      const relativePath = level.relativePath === "" ? name : `${level.relativePath}/${name}`;
      const stats = passingOver(relativePath, options, () => statIn(descent.fd, name));
      if (stats === undefined) {
        yield undefined;
        continue;
      }
      if (guard?.shows(descent.fd, name, isDirectory(stats)) === false) {
        options.onHidden?.(descent.fd, name);
        yield undefined;
        continue;
      }
      const depth = levels.length;
      const entry = { relativePath, name, directoryFd: descent.fd, stats, depth };
      yield entry;
      if (!isDirectory(stats) || depth >= maxDepth || options.enters?.(entry) === false) continue;
      if (!passingOver(relativePath, options, () => enter(descent, name))) continue;
      try {
        levels.push({ relativePath, names: yield* readSorted(descent.fd) });
      } catch (error) {
        passOver(relativePath, options, error);
        descent.leave();
      }
    }
  } finally {
    descent.close();
  }
}

function* readSorted(directoryFd: number): Generator<undefined, SortedNames, void> {
  const names = new SortedNames();
  for (let read = readNames(directoryFd); read !== undefined; read = readNames(directoryFd)) {
    for (const name of read) names.add(name);
    yield undefined;
  }
  return names;
}

function enter(descent: Descent, name: string): true {
  descent.enter(name);
  return true;
}

/** Goes on above the last directory. Those that cannot be come back to are passed over with what is left in them. */
function goUp(descent: Descent, levels: Level[], options: WalkOptions): void {
  levels.pop();
  while (levels.length > 0) {
    try {
      descent.leave();
      return;
    } catch (error) {
      passOver(levels.pop()?.relativePath ?? "", options, error);
    }
  }
}

/** What ends a walk instead of being passed over: it says nothing about the entry. */
const SCARCE = ["EMFILE", "ENFILE", "ENOMEM"];
/** It was removed, moved, or became something else, after its name was read. */
const VANISHED = ["ENOENT", "ENOTDIR", "ELOOP", "ESTALE"];

/** What `call` returns; undefined when its entry has vanished, or was reported. @throws what says nothing about the entry. */
export function passingOver<T>(relativePath: string, options: WalkOptions, call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    passOver(relativePath, options, error);
    return undefined;
  }
}

function passOver(relativePath: string, options: WalkOptions, error: unknown): void {
  const errno = error instanceof PicodError ? error.reason : (errnoName(error) ?? "");
  if (errno === "" || SCARCE.includes(errno)) throw error;
  if (!VANISHED.includes(errno)) options.onUnreadable(relativePath, error);
}

/** Opens the directory where a walk begins. @throws errno of open(2). To be called with the rights of the acting user. */
export function openWalk(access: Access, path: string): number {
  return access.root.open(path, OPEN_DIRECTORY);
}

/** So long the main thread may belong to one walk. */
const TURN_MS = 2;

/**
 * Takes what `steps` yields, with the rights of the acting user and in short turns between which others run. `take` is called within a
 * turn, while the entry's directory is open, and what it returns is yielded, at most `batch` at a time. Leaving early closes `steps`.
 */
export async function* inTurns<S, T>(
  access: Access,
  steps: Generator<S | undefined, void, void>,
  batch: number,
  abortSignal: AbortSignal,
  take: (step: S) => T | undefined,
): AsyncGenerator<T[], void, void> {
  try {
    for (let done = false; !done; ) {
      abortSignal.throwIfAborted();
      const taken: T[] = [];
      const until = performance.now() + TURN_MS;
      withFileRightsOf(access, () => {
        do {
          const step = steps.next();
          if (step.done) {
            done = true;
          } else if (step.value !== undefined) {
            const result = take(step.value);
            if (result !== undefined) taken.push(result);
          }
        } while (!done && taken.length < batch && performance.now() < until);
      });
      if (taken.length > 0) yield taken;
      if (!done) await nextTurn();
    }
  } finally {
    steps.return();
  }
}
