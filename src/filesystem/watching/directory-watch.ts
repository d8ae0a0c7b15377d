import { describeErrno, errnoName } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { DebouncedChanges } from "./debounce-changes.js";
import type { FileChange, FileChangeKind, WatchOptions } from "./file-change.js";
import type { KernelWatches } from "./kernel-watches.js";
import { TreeChanges } from "./tree-changes.js";
import type { TreeEvent } from "./tree-event.js";
import { explainWatchError } from "./watch-limits.js";
import { WatchTree } from "./watch-tree.js";

export type DirectoryWatchEvent =
  | { readonly kind: "change"; readonly change: FileChange }
  /** Changes before this were lost. */
  | { readonly kind: "overflow" }
  | { readonly kind: "unwatched"; readonly path: string; readonly reason: string; readonly message: string }
  /** Last. */
  | { readonly kind: "ended"; readonly message: string }
  /** Last, as well. */
  | { readonly kind: "failed"; readonly error: unknown };

/** Somebody's watch of a directory: what happens there, as far as asked for, is told to `onEvent` as soon as it is seen. */
export class DirectoryWatch {
  readonly #path: string;
  readonly #onEvent: (event: DirectoryWatchEvent) => void;
  readonly #kinds: ReadonlySet<FileChangeKind>;
  readonly #changes: TreeChanges;
  readonly #debounced: DebouncedChanges | undefined;
  readonly #tree: WatchTree;

  /** @throws INVALID_ARGUMENT for a malformed pattern. */
  constructor(
    watches: KernelWatches,
    access: Access,
    path: string,
    options: WatchOptions,
    onEvent: (event: DirectoryWatchEvent) => void,
  ) {
    const { recursive = false, debounceMs = 0, kinds = [] } = options;
    this.#path = path;
    this.#onEvent = onEvent;
    this.#kinds = new Set(kinds);
    this.#changes = new TreeChanges(path, options);
    this.#debounced = debounceMs > 0 ? new DebouncedChanges(debounceMs, (change) => this.#report(change)) : undefined;
    this.#tree = new WatchTree(watches, access, path, {
      recursive,
      enters: (relativePath) => this.#failing(() => this.#changes.enters(relativePath)) ?? false,
      onEvent: (event) => this.#failing(() => this.#onTreeEvent(event)),
    });
  }

  /** Directories that are watched. */
  get directories(): number {
    return this.#tree.directories;
  }

  /** @throws WATCH_LIMIT_REACHED; errno of open(2); the signal's reason. */
  async open(abortSignal: AbortSignal): Promise<void> {
    try {
      await this.#tree.open(abortSignal);
    } catch (error) {
      throw explainWatchError(error, this.#path);
    }
  }

  /** Resolves when all that has happened so far has been told, but for what is debounced. */
  settled(): Promise<void> {
    return this.#tree.settled();
  }

  /** Whether its path still leads to the directory that it watches. */
  isInPlace(): boolean {
    return this.#tree.isInPlace();
  }

  close(): void {
    this.#tree.close();
    this.#debounced?.close();
  }

  #onTreeEvent(event: TreeEvent): void {
    if (event.kind === "overflow") {
      this.#debounced?.flush();
      this.#onEvent(event);
    } else if (event.kind === "unwatched") {
      const path = this.#changes.absolute(event.path);
      const error = explainWatchError(event.error, path) as Error;
      const reason = errnoName(event.error) ?? "";
      this.#onEvent({ kind: "unwatched", path, reason, message: error === event.error ? describeErrno(error) : error.message });
    } else if (event.kind === "ended") {
      this.#debounced?.flush();
      this.#onEvent({ kind: "ended", message: `${this.#path} is watched no longer: ${event.message}` });
    } else {
      const change = this.#changes.changeOf(event);
      if (change === undefined) return;
      if (this.#debounced === undefined) this.#report(change);
      else this.#debounced.add(change);
    }
  }

  #report(change: FileChange): void {
    if (this.#kinds.size === 0 || this.#kinds.has(change.kind)) this.#onEvent({ kind: "change", change });
  }

  /** What fails when events arrive, which patterns can, has no caller that could be told otherwise. */
  #failing<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      this.close();
      this.#onEvent({ kind: "failed", error });
      return undefined;
    }
  }
}
