/** Whether new work is welcome: from listening until the shutdown begins. */
export class Readiness {
  #ready = true;
  readonly #listeners = new Set<() => void>();

  get ready(): boolean {
    return this.#ready;
  }

  stop(): void {
    this.#ready = false;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Resolves when `ready` is no longer `from`; rejects with the signal's reason when that aborts first. */
  changed(abortSignal: AbortSignal, from: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (!abortSignal.aborted && this.#ready === from) return;
        this.#listeners.delete(settle);
        abortSignal.removeEventListener("abort", settle);
        if (abortSignal.aborted) reject(abortSignal.reason);
        else resolve();
      };
      this.#listeners.add(settle);
      abortSignal.addEventListener("abort", settle);
      settle();
    });
  }
}
