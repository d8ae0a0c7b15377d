import type { ByteRange } from "../../gen/picod/v1/filesystem_pb.js";

/** Bytes of a file from `start` up to, not including, `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

export const PART_BYTES = 16 * 1024 * 1024;

/** What is missing between ranges that are in order; an empty file misses its empty range. */
export function gaps(received: readonly ByteRange[], size: number): Range[] {
  const missing: Range[] = [];
  let at = 0;
  for (const { start, end } of received) {
    if (Number(start) > at) missing.push({ start: at, end: Number(start) });
    at = Number(end);
  }
  if (at < size || size === 0) missing.push({ start: at, end: size });
  return missing;
}

/** No range longer than a part. */
export function* split(ranges: readonly Range[]): Generator<Range> {
  for (const { start, end } of ranges) {
    let at = start;
    do {
      yield { start: at, end: Math.min(end, at + PART_BYTES) };
      at += PART_BYTES;
    } while (at < end);
  }
}
