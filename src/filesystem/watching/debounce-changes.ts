import type { FileChange, FileChangeKind } from "./file-change.js";

/** Paths that may wait; beyond it those that wait longest are reported early. */
const MAX_WAITING = 10_000;

interface Waiting {
  readonly change: FileChange;
  readonly dueAt: number;
}

/**
 * Holds changes back until nothing has happened to their path for a while, and reports what came of them: a file that was made and
 * written was created, one that was made and removed never was.
 */
export class DebouncedChanges {
  readonly #delayMs: number;
  readonly #report: (change: FileChange) => void;
  /** By path; those that are due first come first. */
  readonly #waiting = new Map<string, Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number, report: (change: FileChange) => void) {
    this.#delayMs = delayMs;
    this.#report = report;
  }

  add(change: FileChange): void {
    if (change.kind === "moved") this.#addMove(change);
    else this.#addOther(change);
    if (this.#waiting.size > MAX_WAITING) this.#reportFirst();
    this.#timer ??= this.#waiting.size > 0 ? setTimeout(() => this.#reportDue(), this.#delayMs) : undefined;
  }

  /** Reports all that waits. */
  flush(): void {
    while (this.#waiting.size > 0) this.#reportFirst();
  }

  /** Nothing is reported any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#waiting.clear();
  }

  #addMove(move: FileChange): void {
    const { path, fromPath = "", isDirectory } = move;
    if (isDirectory) {
      // What waits below it has the old path.
      this.flush();
      this.#report(move);
      return;
    }
    const before = this.#take(fromPath);
    // It has replaced what was there.
    const replaced = this.#take(path);
    if (before?.kind === "created") {
      const kind = replaced === undefined || replaced.kind === "created" ? "created" : "modified";
      this.#wait({ ...move, kind, fromPath: undefined });
    } else if (before?.kind === "moved") {
      this.#wait({ ...move, fromPath: before.fromPath });
    } else {
      if (before !== undefined) this.#report(before);
      this.#wait(move);
    }
  }

  #addOther(change: FileChange): void {
    const waiting = this.#waiting.get(change.path);
    if (waiting === undefined) {
      this.#wait(change);
      return;
    }
    const { change: before, dueAt } = waiting;
    const isUpdate = change.kind === "modified" || change.kind === "attributes";
    // A directory comes before what is in it, however long that goes on.
    if (before.kind === "created" && isUpdate && change.isDirectory) return;
    this.#waiting.delete(change.path);
    if (before.kind === "moved" || before.isDirectory !== change.isDirectory) {
      if (change.kind === "removed" && before.kind === "moved") {
        // At once: something new may wait under that name.
        this.#report({ ...change, path: before.fromPath ?? before.path });
        return;
      }
      this.#report(before);
      this.#wait(change);
      return;
    }
    const kind = merge(before.kind, change.kind);
    if (kind !== undefined) this.#wait({ ...change, kind }, change.isDirectory ? dueAt : undefined);
  }

  #wait(change: FileChange, dueAt = performance.now() + this.#delayMs): void {
    this.#waiting.set(change.path, { change, dueAt });
  }

  #take(path: string): FileChange | undefined {
    const waiting = this.#waiting.get(path);
    this.#waiting.delete(path);
    return waiting?.change;
  }

  #reportFirst(): void {
    const [path] = this.#waiting.keys();
    const change = this.#take(path ?? "");
    if (change !== undefined) this.#report(change);
  }

  #reportDue(): void {
    this.#timer = undefined;
    for (const { dueAt } of this.#waiting.values()) {
      const waitMs = dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#reportDue(), waitMs);
        return;
      }
      this.#reportFirst();
    }
  }
}

/** What two changes of one path come to; undefined when nothing. */
function merge(before: FileChangeKind, next: FileChangeKind): FileChangeKind | undefined {
  if (before === "created") return next === "removed" ? undefined : "created";
  if (next === "removed") return "removed";
  // It is there again, with another content.
  if (before === "removed") return "modified";
  return before === "modified" || next === "modified" ? "modified" : next;
}
