import { PicodError } from "../errors/picod-error.js";
import type { Access } from "./access.js";
import { ChangeHistory } from "./watching/change-history.js";
import type { FileChange, WatchOptions } from "./watching/file-change.js";
import type { KernelWatches } from "./watching/kernel-watches.js";

const MAX_CHANGES_IN_ANSWER = 1000;
const MAX_HISTORIES = 64;
const IDLE_MS = 10 * 60_000;
/** One that nobody has asked for so long makes way when there are too many. */
const DISPENSABLE_AFTER_MS = 60_000;

export interface GetChangesRequest {
  readonly access: Access;
  readonly path: string;
  readonly options: WatchOptions;
  /** From the answer before; "" to begin. */
  readonly cursor: string;
  /** How long to wait for a change when there is none. */
  readonly waitMs: number;
}

export interface Changes {
  readonly changes: readonly FileChange[];
  readonly cursor: string;
  /** Changes before these are missing. */
  readonly historyLost: boolean;
  /** There are more to be asked for. */
  readonly more: boolean;
}

interface KeptHistory {
  readonly history: ChangeHistory;
  /** Whom and what it is for. */
  readonly key: string;
  readonly expiry: NodeJS.Timeout;
  usedAt: number;
  users: number;
}

/** The watches of clients that poll. Those of one user, path and options share one. */
export class ChangeHistories {
  readonly #watches: KernelWatches;
  readonly #kept = new Map<string, KeptHistory>();

  constructor(watches: KernelWatches) {
    this.#watches = watches;
  }

  /**
   * What has happened since the cursor, all that happened before the call included.
   * @throws INVALID_ARGUMENT, WATCH_LIMIT_REACHED, errno of open(2), the signal's reason.
   */
  async getChanges(request: GetChangesRequest, abortSignal: AbortSignal): Promise<Changes> {
    const since = parseCursor(request.cursor);
    const kept = since === undefined ? undefined : this.#kept.get(since.id);
    if (since === undefined || kept === undefined) return this.#begin(request, since !== undefined, abortSignal);
    if (kept.key !== keyOf(request)) {
      throw invalidCursor(request.cursor, "it is of a watch with another path, user or options");
    }
    using _ = inUse(kept);
    return (await this.#since(kept.history, since.number, request, abortSignal)) ?? this.#begin(request, true, abortSignal);
  }

  close(): void {
    for (const { history } of this.#kept.values()) this.#forget(history);
  }

  /** Undefined when its directory has gone, and all of the history was sent. */
  async #since(
    history: ChangeHistory,
    number: number,
    { waitMs, cursor }: GetChangesRequest,
    abortSignal: AbortSignal,
  ): Promise<Changes | undefined> {
    const giveUpAt = performance.now() + waitMs;
    if (number > history.end) throw invalidCursor(cursor, "there has never been such a one");
    await history.settled();
    for (;;) {
      abortSignal.throwIfAborted();
      const changes = history.since(number, MAX_CHANGES_IN_ANSWER);
      if (changes === undefined) return answer(history, history.end, [], true);
      if (changes.length > 0) return answer(history, number + changes.length, changes, false);
      if (history.ended) {
        this.#forget(history);
        return undefined;
      }
      const leftMs = giveUpAt - performance.now();
      if (leftMs <= 0) return answer(history, number, [], false);
      await history.news(leftMs, abortSignal);
    }
  }

  async #begin(request: GetChangesRequest, historyLost: boolean, abortSignal: AbortSignal): Promise<Changes> {
    const kept = this.#find(request) ?? this.#add(request);
    using _ = inUse(kept);
    const { history } = kept;
    try {
      await history.opened;
    } catch (error) {
      this.#forget(history);
      throw error;
    }
    await history.settled();
    abortSignal.throwIfAborted();
    return answer(history, history.end, [], historyLost);
  }

  #find(request: GetChangesRequest): KeptHistory | undefined {
    const key = keyOf(request);
    const found = [...this.#kept.values()].find((kept) => kept.key === key);
    if (found === undefined || found.history.isInPlace()) return found;
    this.#forget(found.history);
    return undefined;
  }

  #add(request: GetChangesRequest): KeptHistory {
    if (this.#kept.size >= MAX_HISTORIES) this.#makeRoom(request.path);
    const { access, path, options } = request;
    const history = new ChangeHistory(this.#watches, access, path, options);
    const expiry = setTimeout(() => this.#expire(kept), IDLE_MS).unref();
    const kept: KeptHistory = { history, key: keyOf(request), expiry, usedAt: performance.now(), users: 0 };
    this.#kept.set(history.id, kept);
    return kept;
  }

  #makeRoom(path: string): void {
    const idle = [...this.#kept.values()].filter(({ users }) => users === 0);
    const [oldest] = idle.sort((a, b) => a.usedAt - b.usedAt);
    if (oldest === undefined || performance.now() - oldest.usedAt < DISPENSABLE_AFTER_MS) {
      const message = `cannot watch ${path}: ${MAX_HISTORIES} directories are watched by clients that poll`;
      throw new PicodError("WATCH_LIMIT_REACHED", message, { path });
    }
    this.#forget(oldest.history);
  }

  #expire(kept: KeptHistory): void {
    if (kept.users > 0) kept.expiry.refresh();
    else this.#forget(kept.history);
  }

  #forget(history: ChangeHistory): void {
    clearTimeout(this.#kept.get(history.id)?.expiry);
    this.#kept.delete(history.id);
    history.close();
  }
}

/** While somebody waits it does not become old. */
function inUse(kept: KeptHistory): Disposable {
  kept.users++;
  return {
    [Symbol.dispose]() {
      kept.users--;
      kept.usedAt = performance.now();
      // Refreshing one that was cleared would set it again.
      if (!kept.history.ended) kept.expiry.refresh();
    },
  };
}

function keyOf({ access, path, options }: GetChangesRequest): string {
  const { recursive = false, include = [], exclude = [], debounceMs = 0, kinds = [] } = options;
  return JSON.stringify([access.user.uid, access.root.confinement, path, recursive, include, exclude, debounceMs, kinds]);
}

function answer(history: ChangeHistory, number: number, changes: readonly FileChange[], historyLost: boolean): Changes {
  return { changes, cursor: `${history.id}-${number}`, historyLost, more: number < history.end };
}

function parseCursor(cursor: string): { readonly id: string; readonly number: number } | undefined {
  if (cursor === "") return undefined;
  const [, id, number] = /^([0-9a-f]{24})-(\d{1,15})$/.exec(cursor) ?? [];
  if (id === undefined) throw invalidCursor(cursor, "expected one from the answer before, or none");
  return { id, number: Number(number) };
}

function invalidCursor(cursor: string, why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `invalid cursor: ${JSON.stringify(cursor.slice(0, 120))}: ${why}`);
}
