import type { ArchiveInput, UnpackSteps } from "./archive-input.js";
import type { Extent } from "./data-extents.js";
import { numberAt } from "./decode-tar-header.js";
import { invalidArchive } from "./invalid-archive.js";
import { BLOCK_BYTES } from "./tar-block.js";

/** Pieces of one file: more of them cost more memory than a file is worth. */
const MAX_EXTENTS = 1_000_000;

/** A sparse file as it is in an archive: its size with the holes, and where the stored bytes go, in their order. */
export interface SparseMap {
  readonly size: number;
  readonly extents: readonly Extent[];
}

/** An old GNU header has four extents and says whether blocks with more of them follow. */
const GNU_HEADER = { extents: 386, count: 4, isExtended: 482, realSize: [483, 12] } as const;
const GNU_EXTENSION = { count: 21, isExtended: 504 } as const;
const GNU_EXTENT_BYTES = 24;

/** The map of GNU's type `S`. */
export function* readGnuMap(name: string, input: ArchiveInput, header: Buffer): UnpackSteps<SparseMap> {
  const size = numberAt(header, GNU_HEADER.realSize);
  const extents = gnuExtents(header, GNU_HEADER.extents, GNU_HEADER.count);
  for (let more = header[GNU_HEADER.isExtended] !== 0; more; ) {
    const block = yield* input.block();
    extents.push(...gnuExtents(block, 0, GNU_EXTENSION.count));
    if (extents.length > MAX_EXTENTS) throw tooManyExtents(name);
    more = block[GNU_EXTENSION.isExtended] !== 0;
  }
  return { size, extents };
}

function gnuExtents(block: Buffer, from: number, count: number): Extent[] {
  const extents: Extent[] = [];
  for (let at = from; at < from + count * GNU_EXTENT_BYTES; at += GNU_EXTENT_BYTES) {
    // A NUL where the first digit would be ends the list.
    if (block[at + 12] === 0) break;
    extents.push({ offset: numberAt(block, [at, 12]), bytes: numberAt(block, [at + 12, 12]) });
  }
  return extents;
}

/** The map of PAX formats 0.0 and 0.1: offsets and lengths by turns, separated by commas. */
export function parsePaxMap(name: string, size: number, map: string): SparseMap {
  const numbers = map === "" ? [] : map.split(",", 2 * MAX_EXTENTS + 2);
  if (numbers.length > 2 * MAX_EXTENTS) throw tooManyExtents(name);
  return {
    size,
    extents: pairs(
      name,
      numbers.map((digits) => decimal(name, digits)),
    ),
  };
}

/** The map of PAX format 1.0, with which the stored bytes begin. Returns also how many of them it takes. */
export function* readPaxMap(
  name: string,
  input: ArchiveInput,
  size: number,
  storedBytes: number,
): UnpackSteps<SparseMap & { readonly mapBytes: number }> {
  const numbers: number[] = [];
  let expected = 1;
  let mapBytes = 0;
  for (let digits = ""; numbers.length < expected; ) {
    mapBytes += BLOCK_BYTES;
    if (mapBytes > storedBytes) throw invalidArchive(name, "its sparse map is longer than its content");
    const lines = (digits + (yield* input.block()).toString("latin1")).split("\n");
    digits = lines.pop() ?? "";
    if (digits.length > BLOCK_BYTES) throw malformed(name);
    for (const line of lines) {
      if (numbers.length === expected) break;
      numbers.push(decimal(name, line));
      if (numbers.length === 1) expected = 1 + 2 * (numbers[0] as number);
      if (expected > 2 * MAX_EXTENTS) throw tooManyExtents(name);
    }
  }
  return { size, extents: pairs(name, numbers.slice(1)), mapBytes };
}

/** @throws INVALID_ARCHIVE unless the extents are in order, within the file, and take all of the stored bytes. */
export function assertConsistent(name: string, { size, extents }: SparseMap, storedBytes: number): void {
  let end = 0;
  let stored = 0;
  for (const { offset, bytes } of extents) {
    if (!(offset >= end && bytes >= 0)) throw malformed(name);
    end = offset + bytes;
    stored += bytes;
  }
  if (!(Number.isSafeInteger(size) && end <= size) || stored !== storedBytes) throw malformed(name);
}

function pairs(name: string, numbers: readonly number[]): Extent[] {
  if (numbers.length % 2 !== 0) throw malformed(name);
  const extents: Extent[] = [];
  for (let at = 0; at < numbers.length; at += 2) {
    extents.push({ offset: numbers[at] as number, bytes: numbers[at + 1] as number });
  }
  return extents;
}

function decimal(name: string, digits: string): number {
  if (!/^[0-9]{1,15}$/.test(digits)) throw malformed(name);
  return Number(digits);
}

function malformed(name: string) {
  return invalidArchive(name, "its sparse map is malformed");
}

function tooManyExtents(name: string) {
  return invalidArchive(name, `its sparse map has more than ${MAX_EXTENTS} extents`);
}
