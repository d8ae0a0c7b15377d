import type { KeptOutput } from "./kept-outputs.js";

/** What the outputs of all sessions together may cost: the oldest make room, whosever they are. */
export class OutputBudget {
  readonly #maxBytes: number;
  /** Oldest first, with what takes each from its session. */
  readonly #drops = new Map<KeptOutput, () => void>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @param drop called when it has to make room; then it is `removed`. */
  add(output: KeptOutput, drop: () => void): void {
    this.#drops.set(output, drop);
    this.#bytes += output.content.length;
    for (const [oldest, dropOldest] of this.#drops) {
      if (this.#bytes <= this.#maxBytes || oldest === output) break;
      dropOldest();
    }
  }

  removed(output: KeptOutput): void {
    if (this.#drops.delete(output)) this.#bytes -= output.content.length;
  }
}
