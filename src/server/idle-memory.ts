import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { libc } from "../os/libc.js";

/** How often it is looked whether all is quiet: no call, and nothing else for more than this share of the time. */
const LOOK_MS = 1_000;
const QUIET_SHARE = 0.01;
/**
 * So often in a row before memory is given back. When nothing is in progress a collection takes hidden classes with it that the compiler
 * has relied on: the next thousand calls cost up to twice as much, and somebody who pauses for thought should not pay for that.
 */
const QUIET_LOOKS = 10;
/** Nothing of the start is used again. */
const QUIET_LOOKS_AFTER_START = 1;
/** Less than this is not worth the pause. */
const WORTH_BYTES = 8 * 1024 * 1024;
/** More than this, which is more than many small calls take, does not wait for so long. */
const MUCH_BYTES = 64 * 1024 * 1024;

/**
 * Gives back to the system what the start or a burst of calls has left: garbage, room for more of it, and free memory of the C library. V8
 * collects only when it needs room, and both keep what they have. It holds up the main thread for 12 to 43 ms, as busy as the machine is.
 */
export class IdleMemory {
  readonly #isAtWork: () => boolean;
  #timer: NodeJS.Timeout | undefined;
  /** The least since memory was given back. */
  #residentBytes = 0;
  #quietLooks = 0;
  #neededLooks = QUIET_LOOKS_AFTER_START;

  /** @param isAtWork whether a call is in progress; those that follow something do not count. */
  constructor(isAtWork: () => boolean) {
    this.#isAtWork = isAtWork;
  }

  /** The start ends. */
  started(): void {
    this.#timer ??= this.#look();
  }

  /** A call begins. */
  wake(): void {
    this.#neededLooks = QUIET_LOOKS;
    this.#timer ??= this.#look();
  }

  #look(): NodeJS.Timeout {
    const before = performance.eventLoopUtilization();
    const look = () => {
      const isQuiet = !this.#isAtWork() && performance.eventLoopUtilization(before).utilization <= QUIET_SHARE;
      this.#quietLooks = isQuiet ? this.#quietLooks + 1 : 0;
      const grownBytes = isQuiet ? this.#grownBytes() : 0;
      const isIdle = this.#quietLooks >= this.#neededLooks || (isQuiet && grownBytes >= MUCH_BYTES);
      this.#timer = isIdle ? undefined : this.#look();
      if (isIdle) this.#quietLooks = 0;
      if (isIdle && grownBytes >= WORTH_BYTES) void this.#giveBack();
    };
    return setTimeout(look, LOOK_MS).unref();
  }

  #grownBytes(): number {
    const now = residentBytes() ?? this.#residentBytes;
    this.#residentBytes = Math.min(this.#residentBytes, now);
    return now - this.#residentBytes;
  }

  async #giveBack(): Promise<void> {
    await collectGarbage();
    libc.malloc_trim?.(0);
    this.#residentBytes = residentBytes() ?? this.#residentBytes;
  }
}

/** Undefined when no descriptor is left, or no /proc is there, to find out. */
function residentBytes(): number | undefined {
  try {
    return process.memoryUsage.rss();
  } catch {
    return undefined;
  }
}

/** Without a flag at the start, under which Node's own code would have to be compiled anew: that took longer than all of ours. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as NodeJS.GCFunction;
  setFlagsFromString("--no-expose-gc");
  await collect({ type: "major", execution: "async", flavor: "last-resort" });
}
