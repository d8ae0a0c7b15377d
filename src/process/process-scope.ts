import type { ManagedProcess } from "./managed-process.js";
import { findMembers } from "./process-tree.js";
import { stop } from "./stop.js";
import type { Grace } from "./termination.js";

/** So many that have ended are looked through at once for what they have left behind. */
const ENDED_AT_ONCE = 32;

/** Processes that end together, with all that they have left in the background. */
export class ProcessScope {
  readonly #processes = new Set<ManagedProcess>();
  readonly #grace: Grace;
  #lookAt = ENDED_AT_ONCE;
  #closed = false;

  /** @param grace between TERM and KILL. */
  constructor(grace: Grace) {
    this.#grace = grace;
  }

  /** One that is added to a scope that was closed is ended. */
  add(process: ManagedProcess): void {
    this.#processes.add(process);
    if (this.#closed) void stop(process, this.#grace);
    else void process.ended.then(() => this.#forgetEmpty());
  }

  /** Ends everything: TERM, grace, KILL. Resolves with how many could not be ended. */
  async close(): Promise<number> {
    this.#closed = true;
    const terminations = await Promise.all([...this.#processes].map((process) => stop(process, this.#grace)));
    return terminations.reduce((sum, { survivingProcesses }) => sum + survivingProcesses, 0);
  }

  /** For a daemon that ends in this turn. */
  get processes(): Iterable<ManagedProcess> {
    return this.#processes;
  }

  /** Whoever has ended and left nothing behind needs no end. A look takes as long as there are processes: many at once. */
  async #forgetEmpty(): Promise<void> {
    const [first] = this.#processes;
    if (first === undefined || this.#processes.size < this.#lookAt) return;
    const snapshot = await first.census.take();
    for (const process of this.#processes) {
      if (process.hasEnded && findMembers(process, true, snapshot).length === 0) this.#processes.delete(process);
    }
    this.#lookAt = this.#processes.size + ENDED_AT_ONCE;
  }
}
