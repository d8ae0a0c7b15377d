import { setImmediate as nextTurn } from "node:timers/promises";
import type { Access } from "./access.js";
import { DirectoryWatch, type DirectoryWatchEvent } from "./watching/directory-watch.js";
import type { WatchOptions } from "./watching/file-change.js";
import type { KernelWatches } from "./watching/kernel-watches.js";
import { WaitingEvents } from "./watching/waiting-events.js";

/** So long the main thread may belong to what waits for one watcher. */
const TURN_MS = 2;

export type WatchDirectoryEvent =
  /** First. */
  | { readonly kind: "ready"; readonly directories: number }
  | { readonly kind: "keepalive" }
  | Exclude<DirectoryWatchEvent, { readonly kind: "failed" }>;

/**
 * What happens in a directory from now on, until it is gone; with a keepalive whenever nothing does.
 * @throws errno of open(2), INVALID_ARGUMENT, WATCH_LIMIT_REACHED, WATCHER_TOO_SLOW; the signal's reason.
 */
export async function* watchDirectory(
  watches: KernelWatches,
  access: Access,
  path: string,
  options: WatchOptions,
  keepaliveMs: number,
  abortSignal: AbortSignal,
): AsyncGenerator<WatchDirectoryEvent> {
  const waiting = new WaitingEvents(path);
  using timer = new KeepaliveTimer(keepaliveMs, waiting);
  const watch = new DirectoryWatch(watches, access, path, options, (event) => waiting.push(event));
  const onAbort = () => waiting.wake();
  abortSignal.addEventListener("abort", onAbort);
  waiting.onGivenUp = () => watch.close();
  try {
    await watch.open(abortSignal);
    yield { kind: "ready", directories: watch.directories };
    for (let until = performance.now() + TURN_MS; ; ) {
      if (performance.now() > until) {
        await nextTurn();
        until = performance.now() + TURN_MS;
      }
      abortSignal.throwIfAborted();
      const event = waiting.take();
      if (event === undefined) {
        timer.refresh();
        await waiting.news();
        if (waiting.isEmpty && !abortSignal.aborted) yield { kind: "keepalive" };
      } else if (event.kind === "failed") {
        throw event.error;
      } else {
        yield event;
        if (event.kind === "ended") return;
      }
    }
  } finally {
    watch.close();
    waiting.close();
    abortSignal.removeEventListener("abort", onAbort);
  }
}

class KeepaliveTimer implements Disposable {
  readonly #timer: NodeJS.Timeout;

  constructor(intervalMs: number, waiting: WaitingEvents) {
    this.#timer = setInterval(() => waiting.wake(), intervalMs);
  }

  refresh(): void {
    this.#timer.refresh();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
