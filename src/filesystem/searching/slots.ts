/** Lets so many work at once; others wait for their turn, first come, first served. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot, which is free again at the end. Use with `using`. @throws the reason of the abort. */
  async take(abortSignal: AbortSignal): Promise<Disposable> {
    abortSignal.throwIfAborted();
    if (this.#free === 0) await this.#turn(abortSignal);
    else this.#free--;
    return { [Symbol.dispose]: () => this.#giveBack() };
  }

  async #turn(abortSignal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      if (this.#waiting.delete(resolve)) reject(abortSignal.reason);
    };
    this.#waiting.add(resolve);
    abortSignal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      abortSignal.removeEventListener("abort", onAbort);
    }
  }

  /** Hands it over to who waits longest. */
  #giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
    } else {
      this.#waiting.delete(next);
      next();
    }
  }
}
