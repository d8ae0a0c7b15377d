/** How late timers are is looked at so often while something is going on, … */
const BUSY_TICK_MS = 100;
/** … and so often while calls and processes are there that do nothing. Without any nobody looks: an idle daemon sleeps. */
const QUIET_TICK_MS = 1_000;
/** Of the time between two looks; below it nothing is going on. */
const BUSY_SHARE = 0.02;

export interface Stall {
  /** How late the look was. */
  readonly durationMs: number;
  /** Processor time of the daemon's main thread and its helpers meanwhile: little of it means that it waited, or was not let run. */
  readonly cpuMs: number;
}

export interface EventLoopWatchOptions {
  /** 0: no stall is reported. */
  readonly thresholdMs: number;
  /** Whether there is anything that could be held up. */
  readonly isInUse: () => boolean;
  readonly onLag: (lagMs: number) => void;
  readonly onStall: (stall: Stall) => void;
}

/** Notices when the event loop is held up: by work of the daemon, a system call that blocks, or a machine that does not let it run. */
export class EventLoopWatch {
  readonly #options: EventLoopWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;
  #utilization = performance.eventLoopUtilization();
  #cpu = process.cpuUsage();

  constructor(options: EventLoopWatchOptions) {
    this.#options = options;
  }

  /** Something begins. */
  wake(): void {
    if (this.#timer !== undefined) return;
    this.#utilization = performance.eventLoopUtilization();
    this.#cpu = process.cpuUsage();
    this.#lookIn(BUSY_TICK_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #lookIn(delayMs: number): void {
    this.#dueAt = performance.now() + delayMs;
    this.#timer = setTimeout(() => this.#look(), delayMs).unref();
  }

  #look(): void {
    const { thresholdMs, isInUse, onLag, onStall } = this.#options;
    const lagMs = Math.max(0, performance.now() - this.#dueAt);
    onLag(lagMs);
    const utilization = performance.eventLoopUtilization();
    const { user, system } = process.cpuUsage(this.#cpu);
    if (thresholdMs > 0 && lagMs >= thresholdMs) onStall({ durationMs: lagMs, cpuMs: (user + system) / 1000 });
    const { utilization: share } = performance.eventLoopUtilization(utilization, this.#utilization);
    this.#utilization = utilization;
    this.#cpu = process.cpuUsage();
    this.#timer = undefined;
    if (isInUse()) this.#lookIn(share > BUSY_SHARE ? BUSY_TICK_MS : QUIET_TICK_MS);
  }
}
