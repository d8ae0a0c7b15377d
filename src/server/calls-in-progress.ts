/** Knows how many calls are in progress. */
export class CallsInProgress {
  #public = 0;
  #authorized = 0;
  #waiting: { readonly publicToo: boolean; readonly resolve: () => void }[] = [];

  /** Those that needed no token. */
  get publicCount(): number {
    return this.#public;
  }

  /** Counts a call until `run` has settled. */
  async count<T>(isPublic: boolean, run: () => Promise<T>): Promise<T> {
    this.#add(isPublic, 1);
    try {
      return await run();
    } finally {
      this.#add(isPublic, -1);
    }
  }

  /**
   * Resolves when none is in progress. Those that needed no token need not count: whoever watches the health of the daemon watches
   * for ever.
   */
  idle(publicToo: boolean): Promise<void> {
    return this.#isIdle(publicToo) ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ publicToo, resolve }));
  }

  #isIdle(publicToo: boolean): boolean {
    return this.#authorized === 0 && (!publicToo || this.#public === 0);
  }

  #add(isPublic: boolean, change: 1 | -1): void {
    if (isPublic) this.#public += change;
    else this.#authorized += change;
    if (change > 0 || this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ publicToo, resolve }) => {
      const idle = this.#isIdle(publicToo);
      if (idle) resolve();
      return !idle;
    });
  }
}
