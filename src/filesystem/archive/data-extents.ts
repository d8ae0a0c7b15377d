import { setImmediate as nextTurn } from "node:timers/promises";
import { nextData } from "../../os/file-data.js";

/** Extents that are asked for in one turn of the event loop, about a millisecond. */
const PER_TURN = 256;

/** A part of a file that holds data; the rest is holes. */
export interface Extent {
  readonly offset: number;
  readonly bytes: number;
}

/** Where a file of that size holds data. One extent for all of it where the file system cannot tell. */
export async function dataExtents(fd: number, size: number): Promise<Extent[]> {
  const extents: Extent[] = [];
  for (let piece = nextData(fd, 0, size); piece !== undefined; piece = nextData(fd, piece.end, size)) {
    extents.push({ offset: piece.start, bytes: piece.end - piece.start });
    if (extents.length % PER_TURN === 0) await nextTurn();
  }
  return extents;
}
