/** Whoever has no rights must not fill the disk, or push the others' lines out. */
const MAX_PER_SECOND = 20;
const WINDOW_MS = 1000;

/** How many refusals of one kind are written down: so many a second, and a count of the others. */
export class RefusalLimit {
  readonly #onLeftOut: (count: number) => void;
  #timer: NodeJS.Timeout | undefined;
  #second = 0;
  #count = 0;
  #leftOut = 0;

  /** @param onLeftOut called at most once a second with how many were too many. */
  constructor(onLeftOut: (count: number) => void) {
    this.#onLeftOut = onLeftOut;
  }

  /** Whether this one is too many. */
  isTooMuch(): boolean {
    const second = Math.floor(performance.now() / WINDOW_MS);
    if (second !== this.#second) {
      this.tellLeftOut();
      this.#second = second;
      this.#count = 0;
    }
    if (this.#count++ < MAX_PER_SECOND) return false;
    this.#leftOut++;
    this.#timer ??= setTimeout(() => this.tellLeftOut(), WINDOW_MS).unref();
    return true;
  }

  /** What is not told yet: for the end. */
  tellLeftOut(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const count = this.#leftOut;
    this.#leftOut = 0;
    if (count > 0) this.#onLeftOut(count);
  }
}
