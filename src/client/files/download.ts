import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { EntryInfo, FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import { cancelled, insistently } from "../insistently.js";
import { reasonOf } from "../reason-of.js";
import type { Connection } from "../transport.js";
import { inParallel } from "./in-parallel.js";
import { type Progress, ProgressTeller } from "./progress.js";
import { PART_BYTES, split } from "./ranges.js";
import { type Content, readPiece } from "./read-piece.js";

export interface DownloadOptions {
  /** As in ReadFileRequest. */
  readonly user?: string;
  readonly signal?: AbortSignal;
  /** Called as bytes arrive. */
  readonly onProgress?: (progress: Progress) => void;
  /** Parts of 16 MiB that are under way at a time. Default 2: while one is asked for, the other comes. */
  readonly parallel?: number;
}

/** A piece that broke is asked for again in smaller ones, down to this. */
const MIN_PIECE_BYTES = 16 * 1024;
/** A file that is another one each time is not for downloading. */
const MAX_CHANGES = 5;
const CHANGED = ["PRECONDITION_FAILED", "FILE_SHRANK", "OFFSET_BEYOND_END"];

/** The content goes to a temporary file beside the destination, which takes the name when every piece of it is verified. */
export async function download(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  remotePath: string,
  localPath: string,
  options: DownloadOptions,
): Promise<EntryInfo> {
  const temporary = `${localPath}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await using file = await open(temporary, "wx");
    const entry = await unchanged(file, () => fetchAll(filesystem, connection, remotePath, file, options));
    await rename(temporary, localPath);
    return entry;
  } catch (error) {
    await rm(temporary, { force: true });
    throw options.signal?.aborted ? cancelled(options.signal) : error;
  }
}

/** Begins anew when the file is another one than that whose first bytes have come. */
async function unchanged(file: FileHandle, fetch: () => Promise<EntryInfo>): Promise<EntryInfo> {
  for (let changes = 0; ; changes++) {
    try {
      return await fetch();
    } catch (error) {
      if (!CHANGED.includes(reasonOf(error) ?? "") || changes === MAX_CHANGES) throw error;
      await file.truncate();
    }
  }
}

async function fetchAll(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  path: string,
  file: FileHandle,
  { user = "", signal, onProgress, parallel = 2 }: DownloadOptions,
): Promise<EntryInfo> {
  const progress = new ProgressTeller(onProgress);
  const content: Content = { filesystem, request: { path, user }, file, progress };
  const first = await fetchPart(connection, content, 0, PART_BYTES, signal);
  const entry = content.entry as EntryInfo;
  const size = Number(entry.size);
  const rest = size > PART_BYTES ? split([{ start: PART_BYTES, end: size }]) : [];
  await inParallel(rest, parallel, signal, async ({ start, end }, leave) => {
    const bytes = await fetchPart(connection, content, start, end, leave);
    if (bytes < end - start) throw new ConnectError(`the file ended early: ${path}`, Code.DataLoss);
  });
  // Files of /proc do not know their size.
  for (let at = first, bytes = first; size === 0 && bytes === PART_BYTES; at += bytes) {
    bytes = await fetchPart(connection, content, at, at + PART_BYTES, signal);
  }
  return entry;
}

/** Returns how many bytes there were: fewer than asked for at the end of the file. */
async function fetchPart(
  connection: Connection,
  content: Content,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  let at = start;
  let pieceBytes = end - start;
  await insistently(connection, signal, async (options, retries) => {
    while (at < end) {
      const length = Math.min(pieceBytes, end - at);
      const arrived = { bytes: 0 };
      try {
        await readPiece(content, at, length, arrived, options);
      } catch (error) {
        // What broke is not verified, and comes again.
        content.progress.add(-arrived.bytes);
        pieceBytes = Math.max(MIN_PIECE_BYTES, Math.floor(arrived.bytes / 2));
        throw error;
      }
      retries.succeeded();
      at += arrived.bytes;
      if (arrived.bytes < length) return;
      pieceBytes *= 2;
    }
  });
  return at - start;
}
