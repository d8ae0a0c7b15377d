import { FILE_HEADERS_ONLY, formatPatch, structuredPatch } from "diff";

/** Lines around what differs. */
const CONTEXT_LINES = 3;
/** Lines that differ: what finding them costs grows with the square of it. */
const MAX_CHANGED_LINES = 500;
const MAX_DIFF_BYTES = 64 * 1024;

export interface UnifiedDiff {
  /** As `diff -u` has it. */
  readonly text: string;
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

/** Undefined when it would be longer than 64 KiB or have more than 500 lines that differ. */
export function unifiedDiff(path: string, before: string, after: string): UnifiedDiff | undefined {
  const { start, beforeEnd, afterEnd } = whatDiffers(before, after);
  const [oldPart, newPart] = [before.slice(start, beforeEnd), after.slice(start, afterEnd)];
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_CHANGED_LINES };
  const patch = structuredPatch(path, path, oldPart, newPart, undefined, undefined, options);
  if (patch === undefined) return undefined;
  const linesAbove = countLines(before.slice(0, start));
  for (const hunk of patch.hunks) {
    hunk.oldStart += linesAbove;
    hunk.newStart += linesAbove;
  }
  const text = formatPatch(patch, FILE_HEADERS_ONLY);
  if (Buffer.byteLength(text) > MAX_DIFF_BYTES) return undefined;
  const lines = patch.hunks.flatMap((hunk) => hunk.lines);
  const count = (mark: string) => lines.filter((line) => line.startsWith(mark)).length;
  return { text, linesAdded: count("+"), linesRemoved: count("-") };
}

/** Both without the lines that they begin and end with alike, except for those that are shown around what differs. */
function whatDiffers(before: string, after: string): { start: number; beforeEnd: number; afterEnd: number } {
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && before.charCodeAt(same) === after.charCodeAt(same)) same++;
  let sameAtEnd = 0;
  while (
    sameAtEnd < shorter - same &&
    before.charCodeAt(before.length - 1 - sameAtEnd) === after.charCodeAt(after.length - 1 - sameAtEnd)
  ) {
    sameAtEnd++;
  }
  const end = endOfContext(before, before.length - sameAtEnd);
  return { start: startOfContext(before, same), beforeEnd: end, afterEnd: after.length - (before.length - end) };
}

/** Where the line begins that is so many lines above that place. */
function startOfContext(text: string, place: number): number {
  let at = place;
  for (let lines = 0; lines <= CONTEXT_LINES; lines++) {
    const end = at === 0 ? -1 : text.lastIndexOf("\n", at - 1);
    if (end === -1) return 0;
    at = end;
  }
  return at + 1;
}

/** Behind the line that is so many lines below that place. */
function endOfContext(text: string, place: number): number {
  let at = place;
  for (let lines = 0; lines <= CONTEXT_LINES; lines++) {
    const end = text.indexOf("\n", at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
