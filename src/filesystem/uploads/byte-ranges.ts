/** Bytes from `start` up to, not including, `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Which bytes are there: ranges in order, without overlaps, and never two that touch. */
export class ByteRanges implements Iterable<ByteRange> {
  #ranges: ByteRange[] = [];

  /** Ranges that are apart from each other. */
  get count(): number {
    return this.#ranges.length;
  }

  /** One past the last byte; 0 when there is none. */
  get end(): number {
    return this.#ranges.at(-1)?.end ?? 0;
  }

  [Symbol.iterator](): Iterator<ByteRange> {
    return this.#ranges.values();
  }

  add(start: number, end: number): void {
    if (start >= end) return;
    const last = this.#ranges.at(-1);
    // What arrives in order grows the last range.
    if (last !== undefined && start >= last.start && start <= last.end) {
      this.#ranges[this.#ranges.length - 1] = { start: last.start, end: Math.max(last.end, end) };
      return;
    }
    const touching = this.#ranges.filter((range) => range.end >= start && range.start <= end);
    const merged = {
      start: Math.min(start, touching[0]?.start ?? start),
      end: Math.max(end, touching.at(-1)?.end ?? end),
    };
    const before = this.#ranges.filter((range) => range.end < start);
    const behind = this.#ranges.filter((range) => range.start > end);
    this.#ranges = [...before, merged, ...behind];
  }

  remove(start: number, end: number): void {
    if (start >= end) return;
    this.#ranges = this.#ranges.flatMap((range) => [
      ...(range.start < start ? [{ start: range.start, end: Math.min(range.end, start) }] : []),
      ...(range.end > end ? [{ start: Math.max(range.start, end), end: range.end }] : []),
    ]);
  }

  /** Bytes of a range that are there. */
  countIn(start: number, end: number): number {
    return this.#ranges.reduce((sum, range) => sum + Math.max(0, Math.min(range.end, end) - Math.max(range.start, start)), 0);
  }

  /** What is missing up to `size`. */
  missing(size: number): ByteRange[] {
    const gaps: ByteRange[] = [];
    let position = 0;
    for (const { start, end } of this.#ranges) {
      if (position >= size) break;
      if (start > position) gaps.push({ start: position, end: Math.min(start, size) });
      position = end;
    }
    if (position < size) gaps.push({ start: position, end: size });
    return gaps;
  }
}
