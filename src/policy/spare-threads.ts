import { setImmediate } from "node:timers/promises";
import type { ConfinedThread } from "../os/confined-thread.js";

const SPARES = 2;
/** They are kept for the next terminal for so long. */
const IDLE_MS = 60_000;

/**
 * Threads that have prepared themselves and are yet to be confined, each of which is used once: making one takes some 50 ms, which
 * nobody waits for when it was made before. None is there before the first was taken.
 */
export class SpareThreads {
  readonly #make: () => ConfinedThread;
  readonly #spares: ConfinedThread[] = [];
  #isFilling = false;
  #isClosed = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(make: () => ConfinedThread) {
    this.#make = make;
  }

  /** One to be confined; where none has been made before, it is made now. */
  take(): ConfinedThread {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#drop(), IDLE_MS).unref();
    const spare = this.#spares.shift() ?? this.#make();
    if (!this.#isFilling) void this.#fill();
    return spare;
  }

  /** Resolves when the next one need not be waited for, as far as any was taken yet. */
  async ready(): Promise<void> {
    while (this.#isFilling && this.#spares.length === 0) await setImmediate();
    await this.#spares[0]?.prepared();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    this.#drop();
  }

  /** One after the other: they are not to take the processors from what is going on. */
  async #fill(): Promise<void> {
    this.#isFilling = true;
    try {
      while (this.#spares.length < SPARES) {
        await setImmediate();
        if (this.#isClosed) return;
        const spare = this.#make();
        this.#spares.push(spare);
        await spare.prepared();
      }
    } catch {
      // Whoever needs one is told why none can be made.
    } finally {
      this.#isFilling = false;
    }
  }

  #drop(): void {
    for (const spare of this.#spares.splice(0)) spare.close();
  }
}
