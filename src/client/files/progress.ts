/** How far a transfer is. */
export interface Progress {
  /** Bytes that are through. */
  readonly bytes: number;
  /** Of so many; 0 while that is not known. */
  readonly total: number;
}

/** Tells how far a transfer is. What goes over again after a broken connection is not told again. */
export class ProgressTeller {
  readonly #tell: ((progress: Progress) => void) | undefined;
  #bytes = 0;
  #told = -1;
  total = 0;

  constructor(tell: ((progress: Progress) => void) | undefined) {
    this.#tell = tell;
  }

  /** Negative when what went over has to go over again. */
  add(bytes: number): void {
    this.at(this.#bytes + bytes);
  }

  at(bytes: number): void {
    this.#bytes = bytes;
    if (bytes <= this.#told) return;
    this.#told = bytes;
    this.#tell?.({ bytes, total: this.total });
  }
}
