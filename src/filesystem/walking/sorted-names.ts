/** Names that are sorted at once, in a few milliseconds. */
const RUN_NAMES = 4096;

/**
 * Collects the names of a directory and gives them back sorted by their bytes. A directory with a million names costs little more memory
 * than the names themselves: they are sorted in runs, which are kept as bytes, and merged while they are taken.
 */
export class SortedNames {
  /** As latin1, whose order is that of the bytes. */
  #unsorted: string[] = [];
  /** Once sealed, a heap by the first name of each run. */
  readonly #runs: Run[] = [];
  #sealed = false;

  add(name: Buffer): void {
    this.#unsorted.push(name.toString("latin1"));
    if (this.#unsorted.length === RUN_NAMES) this.#closeRun();
  }

  /** The smallest that is left; undefined when none is. Nothing may be added any longer. */
  take(): Buffer | undefined {
    if (!this.#sealed) this.#seal();
    const [smallest] = this.#runs;
    if (smallest === undefined) return undefined;
    const { first } = smallest;
    if (!smallest.advance()) {
      const last = this.#runs.pop() as Run;
      if (last !== smallest) this.#runs[0] = last;
    }
    this.#sink(0);
    return Buffer.from(first, "latin1");
  }

  #seal(): void {
    if (this.#unsorted.length > 0) this.#closeRun();
    for (let at = (this.#runs.length >> 1) - 1; at >= 0; at--) this.#sink(at);
    this.#sealed = true;
  }

  #closeRun(): void {
    this.#runs.push(new Run(this.#unsorted.sort()));
    this.#unsorted = [];
  }

  #sink(from: number): void {
    const runs = this.#runs;
    for (let at = from; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < runs.length && (runs[child] as Run).first < (runs[least] as Run).first) least = child;
      }
      if (least === at) return;
      [runs[at], runs[least]] = [runs[least] as Run, runs[at] as Run];
      at = least;
    }
  }
}

/** Sorted names as bytes, each with a NUL behind it: there are file systems whose names are longer than 255 bytes. */
class Run {
  readonly #bytes: Buffer;
  #at = 0;
  first = "";

  constructor(names: readonly string[]) {
    this.#bytes = Buffer.from(names.map((name) => `${name}\0`).join(""), "latin1");
    this.advance();
  }

  /** Goes to the next name; false when there is none. */
  advance(): boolean {
    const end = this.#bytes.indexOf(0, this.#at);
    if (end < 0) return false;
    this.first = this.#bytes.toString("latin1", this.#at, end);
    this.#at = end + 1;
    return true;
  }
}
