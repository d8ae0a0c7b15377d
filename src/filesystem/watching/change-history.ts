import { randomBytes } from "node:crypto";
import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../access.js";
import { DirectoryWatch, type DirectoryWatchEvent } from "./directory-watch.js";
import type { FileChange, WatchOptions } from "./file-change.js";
import type { KernelWatches } from "./kernel-watches.js";

const MAX_CHANGES = 10_000;

/** The last changes of one directory, numbered, for those who come back to ask what there is since a number. */
export class ChangeHistory {
  /** Random, so that another daemon's history is not taken for this one. */
  readonly id = randomBytes(12).toString("hex");
  /** Resolves when it watches. */
  readonly opened: Promise<void>;
  readonly #path: string;
  readonly #watch: DirectoryWatch;
  #changes: FileChange[] = [];
  /** Number of the first that is kept; some more than promised are, so that not every change moves all others. */
  #keptFrom = 0;
  #ended = false;
  #error: unknown;
  /** A directory below could not be watched because there are no watches left. */
  #onLacking: (message: string) => void = () => this.#lose();
  readonly #listeners = new Set<() => void>();

  /** Begins to watch. @throws INVALID_ARGUMENT for a malformed pattern; for the rest see `opened`. */
  constructor(watches: KernelWatches, access: Access, path: string, options: WatchOptions) {
    this.#path = path;
    this.#watch = new DirectoryWatch(watches, access, path, options, (event) => this.#onEvent(event));
    this.opened = this.#open();
    // Whoever waits for it is told; nobody may be waiting any more.
    this.opened.catch(() => undefined);
  }

  /** Number of the next change. */
  get end(): number {
    return this.#keptFrom + this.#changes.length;
  }

  /** Its directory has gone. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Resolves when everything that has happened so far is part of it, but for what is debounced. */
  settled(): Promise<void> {
    return this.#watch.settled();
  }

  isInPlace(): boolean {
    return !this.#ended && this.#watch.isInPlace();
  }

  /** Changes from a number on; undefined when some of them are missing. @throws what ended the watch. */
  since(number: number, limit: number): FileChange[] | undefined {
    if (number < this.#keptFrom || number < this.end - MAX_CHANGES) return undefined;
    const changes = this.#changes.slice(number - this.#keptFrom, number - this.#keptFrom + limit);
    if (changes.length === 0 && this.#error !== undefined) throw this.#error;
    return changes;
  }

  /** Resolves at the next change, or when there will be none; after that time; or when the signal aborts. */
  news(timeoutMs: number, abortSignal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#listeners.delete(done);
        abortSignal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#listeners.add(done);
      abortSignal.addEventListener("abort", done);
      if (abortSignal.aborted || this.#ended) done();
    });
  }

  close(): void {
    this.#ended = true;
    this.#watch.close();
    this.#tellListeners();
  }

  async #open(): Promise<void> {
    let lacking: string | undefined;
    this.#onLacking = (message) => {
      lacking ??= message;
    };
    // Others may wait for it when the one who asked first has gone.
    await this.#watch.open(new AbortController().signal);
    this.#onLacking = () => this.#lose();
    if (lacking === undefined) return;
    // There is no message that could tell this once, and an answer without changes would say that nothing happens there.
    this.close();
    throw new PicodError("WATCH_LIMIT_REACHED", lacking, { path: this.#path });
  }

  #onEvent(event: DirectoryWatchEvent): void {
    if (event.kind === "change") this.#add(event.change);
    else if (event.kind === "overflow") this.#lose();
    else if (event.kind === "ended") this.#ended = true;
    else if (event.kind === "failed") this.#error = event.error;
    else if (event.reason === "ENOSPC") this.#onLacking(event.message);
    this.#tellListeners();
  }

  #add(change: FileChange): void {
    this.#changes.push(change);
    if (this.#changes.length < 2 * MAX_CHANGES) return;
    this.#changes.splice(0, MAX_CHANGES);
    this.#keptFrom += MAX_CHANGES;
  }

  /** Leaves out a number, so that whoever is at the end is missing something as well. */
  #lose(): void {
    this.#keptFrom = this.end + 1;
    this.#changes = [];
  }

  #tellListeners(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
