import type { Span } from "../../filesystem/file-reader.js";

/** More are no reader's wish. */
const MAX_RANGES = 64;

/**
 * The parts of a file that `Range` asks for (RFC 9110, section 14); empty when none of them is there, or they are malformed. Undefined is
 * all of it: for no header, another unit than bytes, a file without bytes, and more than the whole file in parts.
 */
export function parseRanges(header: string | undefined, size: number): readonly Span[] | undefined {
  const list = /^bytes *= *(.*)$/i.exec(header ?? "")?.[1];
  if (list === undefined || size === 0) return undefined;
  const ranges = list
    .split(",")
    .map((range) => range.trim())
    .filter((range) => range !== "");
  if (ranges.length > MAX_RANGES) return undefined;
  const spans = ranges.map((range) => parseRange(range, size));
  if (spans.includes(undefined)) return [];
  const found = (spans as Span[]).filter(({ start, end }) => start < end);
  const bytes = found.reduce((sum, { start, end }) => sum + end - start, 0);
  return bytes > size ? undefined : found;
}

/** `bytes 0-4/10`, as `Content-Range` has it. */
export function contentRange({ start, end }: Span, size: number): string {
  return `bytes ${start}-${end - 1}/${size}`;
}

/** Undefined when it is malformed; without bytes when it lies behind the end. */
function parseRange(range: string, size: number): Span | undefined {
  const [, first, last] = /^(\d*) *- *(\d*)$/.exec(range) ?? [];
  if (first === undefined || last === undefined || first + last === "") return undefined;
  if (first === "") return { start: Math.max(0, size - Number(last)), end: size };
  if (last === "") return { start: Number(first), end: size };
  if (Number(first) > Number(last)) return undefined;
  return { start: Number(first), end: Math.min(size, Number(last) + 1) };
}
