import { describe, expect, it } from "vitest";
import { ByteRanges } from "../../src/filesystem/uploads/byte-ranges.js";

const LENGTH = 40;

/** A generator of numbers that a seed repeats. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const runs = (bytes: readonly boolean[], there: boolean) =>
  [
    ...bytes
      .map((byte) => (byte === there ? "x" : " "))
      .join("")
      .matchAll(/x+/g),
  ].map(({ index, 0: run }) => ({
    start: index,
    end: index + run.length,
  }));

describe("ByteRanges", () => {
  it.each(Array.from({ length: 50 }, (_, seed) => seed))("are what single bytes say (seed %i)", (seed) => {
    const next = random(seed + 1);
    const ranges = new ByteRanges();
    const bytes = new Array<boolean>(LENGTH).fill(false);
    for (let step = 0; step < 40; step++) {
      const start = next(LENGTH + 1);
      const end = Math.min(LENGTH, start + next(6));
      const adds = next(4) > 0;
      if (adds) ranges.add(start, end);
      else ranges.remove(start, end);
      bytes.fill(adds, start, end);
      expect([...ranges]).toEqual(runs(bytes, true));
      expect(ranges.missing(LENGTH)).toEqual(runs(bytes, false));
      expect(ranges.missing(20)).toEqual(runs(bytes.slice(0, 20), false));
      expect(ranges.end).toBe(bytes.lastIndexOf(true) + 1);
      expect(ranges.count).toBe(runs(bytes, true).length);
      expect(ranges.countIn(5, 25)).toBe(bytes.slice(5, 25).filter(Boolean).length);
    }
  });
});
