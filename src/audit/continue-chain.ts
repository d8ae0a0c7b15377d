import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { BEGINNING, type Head, readLink } from "./chain.js";
import { readFileEnd } from "./file-end.js";

/** Of a line that was cut, what is shown of it. */
const MAX_TORN_TEXT = 1_000;

export interface Continuation {
  /** What the next line is chained to. */
  readonly head: Head;
  /** What is behind the last whole line. */
  readonly torn: { readonly bytes: number; readonly text: string } | undefined;
  /** The last line is not what its hash was made of, or has none, or cannot be read. */
  readonly isBroken: boolean;
}

type End = Omit<Continuation, "head"> & { readonly head: Head | undefined };
const EMPTY: End = { head: undefined, torn: undefined, isBroken: false };

/** Where the daemon before this one has left off: at the end of the file, or of the one before when there is no line in it yet. */
export async function continueChain(path: string): Promise<Continuation> {
  const { head, torn, isBroken } = await readEnd(path);
  if (head !== undefined || isBroken) return { head: head ?? BEGINNING, torn, isBroken };
  const previous = await readEnd(`${path}.1`).catch(() => ({ head: undefined, isBroken: true }));
  return { head: previous.head ?? BEGINNING, torn, isBroken: previous.isBroken };
}

async function readEnd(path: string): Promise<End> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return EMPTY;
    throw error;
  }
  try {
    const { line, torn } = await readFileEnd(file.fd, (await file.stat()).size);
    const link = line === undefined ? undefined : readLink(line);
    return {
      head: link,
      torn: torn.length === 0 ? undefined : { bytes: torn.length, text: torn.toString("utf8", 0, MAX_TORN_TEXT) },
      isBroken: line !== undefined && link?.isIntact !== true,
    };
  } finally {
    await file.close();
  }
}
