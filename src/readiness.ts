import { PicodError } from "./errors/picod-error.js";

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

  /**
   * A signal for calls that last as long as what they follow: it aborts with theirs, and with SHUTTING_DOWN as soon as the
   * shutdown begins, so that they do not hold it up. (AbortSignal.any keeps a record of every signal it ever made.)
   */
  whileReady(abortSignal: AbortSignal): { readonly signal: AbortSignal } & Disposable {
    const ending = new AbortController();
    const onAbort = () => ending.abort(abortSignal.reason);
    const onStop = () => ending.abort(new PicodError("SHUTTING_DOWN", "the daemon is shutting down"));
    abortSignal.addEventListener("abort", onAbort);
    this.#listeners.add(onStop);
    if (abortSignal.aborted) onAbort();
    if (!this.#ready) onStop();
    return {
      signal: ending.signal,
      [Symbol.dispose]: () => {
        abortSignal.removeEventListener("abort", onAbort);
        this.#listeners.delete(onStop);
      },
    };
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
