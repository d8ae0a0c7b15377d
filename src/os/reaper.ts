import { constants } from "node:os";
import { TransientMap } from "../transient-map.js";
import { errno, libc } from "./libc.js";
import { systemError } from "./system-error.js";

/** How a child ended and what it used, as wait4(2) reports it. */
export interface ChildExit {
  /** Exit code, or undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  /** Number of the signal that ended it. */
  readonly signal: number | undefined;
  readonly userTimeMs: number;
  readonly systemTimeMs: number;
  readonly maxRssBytes: number;
}

const WNOHANG = 1;
const PR_SET_CHILD_SUBREAPER = 36;
/** struct rusage on 64-bit Linux: ru_utime, ru_stime (seconds, microseconds each), ru_maxrss (KiB), 13 more. */
const usage = new BigInt64Array(18);
const usageBytes = new Uint8Array(usage.buffer);
const status = new Int32Array(1);

/**
 * Waits for every child of this process on one SIGCHLD listener: those that were asked for, and orphans, which come to PID 1 or
 * to a child subreaper and would stay zombies. Nothing else in this process may start children (node:child_process would lose
 * their exits).
 */
export class Reaper {
  readonly #waiting = new TransientMap<number, (exit: ChildExit) => void>();
  /** Children that nobody has asked for yet, and how many starts on other threads had begun: one of those may be theirs. */
  readonly #unclaimed = new Map<number, { readonly exit: ChildExit; readonly begun: number }>();
  /** Numbers of those that are under way, oldest first. */
  readonly #starting = new Set<number>();
  #begun = 0;
  readonly #orphanListeners = new Set<() => void>();
  readonly #onSignal = () => this.#reap();

  constructor() {
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1);
    process.on("SIGCHLD", this.#onSignal);
  }

  /** Calls back once when that child has ended. To be called in the same turn as the spawn, or as `start` of `whileStarting`. */
  onExit(pid: number, listener: (exit: ChildExit) => void): void {
    const early = this.#unclaimed.get(pid);
    if (early === undefined) this.#waiting.set(pid, listener);
    else queueMicrotask(() => listener(early.exit));
    this.#unclaimed.delete(pid);
  }

  /** Keeps exits until `start` has settled: a child may end before its pid is known here. */
  async whileStarting<T>(start: () => Promise<T>): Promise<T> {
    const number = ++this.#begun;
    this.#starting.add(number);
    try {
      return await start();
    } finally {
      this.#starting.delete(number);
      this.#forgetUnclaimed();
    }
  }

  /** What ended before the oldest start began was an orphan. Kept, its exit would be taken for that of the next child with its pid. */
  #forgetUnclaimed(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#starting;
    for (const [pid, { begun }] of this.#unclaimed) {
      if (begun >= oldest) break;
      this.#unclaimed.delete(pid);
    }
  }

  /** Calls back whenever a process that was not ours ended. Returns the function that stops it. */
  onOrphanExit(listener: () => void): () => void {
    this.#orphanListeners.add(listener);
    return () => this.#orphanListeners.delete(listener);
  }

  close(): void {
    process.off("SIGCHLD", this.#onSignal);
  }

  /** SIGCHLDs that come close together are one: every call takes all that have ended. */
  #reap(): void {
    let orphans = false;
    for (;;) {
      const pid = libc.wait4(-1, status, WNOHANG, usageBytes);
      if (pid === 0) break;
      if (pid < 0) {
        const number = errno();
        if (number === constants.errno.EINTR) continue;
        if (number === constants.errno.ECHILD) break;
        throw systemError("wait4", undefined, number);
      }
      const listener = this.#waiting.get(pid);
      this.#waiting.delete(pid);
      const exit = readExit(status[0] ?? 0);
      if (listener !== undefined) listener(exit);
      else if (this.#starting.size > 0) this.#unclaimed.set(pid, { exit, begun: this.#begun });
      orphans ||= listener === undefined;
    }
    if (orphans) for (const listener of [...this.#orphanListeners]) listener();
  }
}

function readExit(value: number): ChildExit {
  const signal = value & 0x7f;
  const [userSeconds = 0n, userMicros = 0n, systemSeconds = 0n, systemMicros = 0n, maxRssKib = 0n] = usage;
  return {
    exitCode: signal === 0 ? (value >> 8) & 0xff : undefined,
    signal: signal === 0 ? undefined : signal,
    userTimeMs: Number(userSeconds) * 1e3 + Number(userMicros) / 1e3,
    systemTimeMs: Number(systemSeconds) * 1e3 + Number(systemMicros) / 1e3,
    maxRssBytes: Number(maxRssKib) * 1024,
  };
}
