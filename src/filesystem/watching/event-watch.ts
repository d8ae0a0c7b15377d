import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../access.js";
import type { KernelWatches } from "./kernel-watches.js";
import type { TreeEvent } from "./tree-event.js";
import { explainWatchError } from "./watch-limits.js";
import { WatchTree } from "./watch-tree.js";

/** Events that may wait to be taken; some hundred bytes each. */
const MAX_WAITING = 50_000;

/** One event as the kernel tells it: a rename within the directory is two. */
export interface WatchedEvent {
  readonly kind: "created" | "modified" | "attributes" | "removed" | "renamed";
  /** Below the directory; `.` for itself. */
  readonly name: string;
}

/**
 * A watch of a directory that tells every event and makes nothing of them: nothing is filtered, joined or held back. When the directory
 * goes nothing comes any more, and that is no error. `close` in any case.
 */
export class EventWatch {
  readonly #path: string;
  readonly #tree: WatchTree;
  #events: WatchedEvent[] = [];
  #failure: unknown;
  #wake: () => void = () => undefined;

  constructor(watches: KernelWatches, access: Access, path: string, recursive: boolean) {
    this.#path = path;
    this.#tree = new WatchTree(watches, access, path, { recursive, enters: () => true, onEvent: (event) => this.#push(event) });
  }

  /** What happens after it has resolved is told. @throws WATCH_LIMIT_REACHED; errno of open(2); the signal's reason. */
  async open(abortSignal: AbortSignal): Promise<void> {
    try {
      await this.#tree.open(abortSignal);
    } catch (error) {
      throw explainWatchError(error, this.#path);
    }
  }

  /** Resolves when all that has happened so far can be taken. */
  settled(): Promise<void> {
    return this.#tree.settled();
  }

  /** All that waits. @throws WATCHER_TOO_SLOW, when that has been taken, if events were lost after it. */
  take(): readonly WatchedEvent[] {
    const events = this.#events;
    if (events.length === 0 && this.#failure !== undefined) throw this.#failure;
    this.#events = [];
    return events;
  }

  /** Resolves with true when there is something to take or the signal aborts, with false when nothing was for so long. */
  news(maxWaitMs: number, abortSignal: AbortSignal): Promise<boolean> {
    if (this.#events.length > 0 || this.#failure !== undefined || abortSignal.aborted) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (isNews: boolean) => {
        clearTimeout(timer);
        abortSignal.removeEventListener("abort", onNews);
        resolve(isNews);
      };
      const onNews = () => settle(true);
      const timer = setTimeout(() => settle(false), maxWaitMs);
      abortSignal.addEventListener("abort", onNews);
      this.#wake = onNews;
    });
  }

  close(): void {
    this.#tree.close();
    this.#wake();
  }

  #push(event: TreeEvent): void {
    if (event.kind === "overflow" || this.#events.length >= MAX_WAITING) {
      const message = `cannot watch ${this.#path}: events were lost: ${this.#events.length} wait to be taken`;
      this.#failure = new PicodError("WATCHER_TOO_SLOW", message, { path: this.#path });
      this.#tree.close();
    } else this.#events.push(...watchedEvents(event));
    this.#wake();
  }
}

/** What happens to names that were never reported is of the time before that. */
function watchedEvents(event: TreeEvent): WatchedEvent[] {
  switch (event.kind) {
    case "moved":
      return [
        ...(event.from === undefined ? [] : [{ kind: "renamed" as const, name: event.from }]),
        ...(event.to === undefined ? [] : [{ kind: "created" as const, name: event.to }]),
      ];
    case "ended":
      if (event.cause === "other") return [];
      return [{ kind: event.cause === "moved" ? "renamed" : "removed", name: "." }];
    case "overflow":
    case "unwatched":
      return [];
    default:
      return (event.kind === "created") === event.known ? [] : [{ kind: event.kind, name: event.path || "." }];
  }
}
