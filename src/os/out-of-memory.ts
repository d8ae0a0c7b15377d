import { constants, readFileSync, writeFileSync } from "node:fs";
import { libc } from "./libc.js";
import { errnoName } from "./system-error.js";

/** Added to what the daemon was started with: of the two, the kernel ends a command first. */
const CHILD_SCORE_ADDED = 200;
const MAX_SCORE = 1000;
const OWN_SCORE_LOWERED = -300;

const AT_FDCWD = -100;
const O_CLOEXEC = 0o2000000;

const LOOK_INTERVAL_MS = 1_000;
const JUST_NOW_MS = 5_000;

const inheritedScore = Number(readText("/proc/self/oom_score_adj") ?? 0);
const CHILD_SCORE = String(Math.min(MAX_SCORE, inheritedScore + CHILD_SCORE_ADDED));

/** Makes the kernel spare the daemon when memory runs out, as far as it may: lowering needs CAP_SYS_RESOURCE. */
export function spareSelfWhenOutOfMemory(): void {
  tryWrite("/proc/self/oom_score_adj", String(Math.max(-MAX_SCORE, inheritedScore + OWN_SCORE_LOWERED)));
}

/** Makes the kernel prefer a child, and all that it will fork, when memory runs out. One that has ended already is no error. */
export function offerWhenOutOfMemory(pid: number): void {
  const fd = libc.openat(AT_FDCWD, `/proc/${pid}/oom_score_adj`, constants.O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  libc.writeText(fd, CHILD_SCORE, CHILD_SCORE.length);
  libc.close(fd);
}

/**
 * Counts processes that the kernel ended for want of memory, where the daemon can see it: in its own cgroup (version 2, then 1),
 * else on the whole system.
 */
export class OutOfMemoryCounter {
  readonly #path = counterPaths("/proc/self/cgroup").find((path) => /^oom_kill \d/m.test(readText(path) ?? ""));
  #seen = this.#read();
  #increasedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** Whether the kernel has ended a process just now: freeing a lot of memory takes it a while until the end is reported. */
  hasJustIncreased(): boolean {
    this.#look();
    return performance.now() - this.#increasedAt < JUST_NOW_MS;
  }

  /**
   * While processes run it looks regularly: otherwise an increase of long ago would explain a KILL of today.
   * An idle daemon sleeps. To be called when one is started.
   */
  watchWhile(isRunning: () => boolean): void {
    if (this.#timer !== undefined) return;
    // What happened while nothing ran concerned nobody here.
    this.#seen = this.#read();
    this.#timer = setInterval(() => {
      this.#look();
      if (!isRunning()) this.close();
    }, LOOK_INTERVAL_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = this.#read();
    if (now > this.#seen) this.#increasedAt = performance.now();
    this.#seen = now;
  }

  #read(): number {
    const text = this.#path === undefined ? undefined : readText(this.#path);
    return Number(/^oom_kill (\d+)$/m.exec(text ?? "")?.[1] ?? 0);
  }
}

/** Files that may hold the count, nearest first. A container may see its own cgroup as the root of the hierarchy. */
function counterPaths(membership: string): string[] {
  const lines = (readText(membership) ?? "").split("\n").map((line) => line.split(":"));
  const pathOf = (isMeant: (controllers: string) => boolean) => lines.find(([, controllers = ""]) => isMeant(controllers))?.[2];
  const unified = pathOf((controllers) => controllers === "");
  const memory = pathOf((controllers) => controllers.split(",").includes("memory"));
  return [
    `/sys/fs/cgroup${unified}/memory.events`,
    "/sys/fs/cgroup/memory.events",
    `/sys/fs/cgroup/memory${memory}/memory.oom_control`,
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/proc/vmstat",
  ];
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return undefined;
  }
}

/** What may not be written, or is gone, stays as it is. */
function tryWrite(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
  }
}
