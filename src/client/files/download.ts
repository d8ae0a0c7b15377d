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
import { type Content, FileChangedError, readPiece } from "./read-piece.js";

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
/** A file that is another one each time, such as a log, is taken as it is after so many. */
const MAX_CHANGES = 3;
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
    const entry = await fetchUnchanged(filesystem, connection, remotePath, file, options);
    await rename(temporary, localPath);
    return entry;
  } catch (error) {
    await rm(temporary, { force: true });
    throw options.signal?.aborted ? cancelled(options.signal) : error;
  }
}

/** Begins anew when the file is another one than that whose first bytes have come. */
async function fetchUnchanged(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  path: string,
  file: FileHandle,
  options: DownloadOptions,
): Promise<EntryInfo> {
  const { user = "", signal, onProgress } = options;
  for (let changes = 0; ; changes++) {
    const content: Content = { filesystem, request: { path, user }, file, progress: new ProgressTeller(onProgress) };
    if (changes === MAX_CHANGES) return fetchAsItIs(connection, content, signal);
    try {
      return await fetchAll(connection, content, options);
    } catch (error) {
      if (!(error instanceof FileChangedError || CHANGED.includes(reasonOf(error) ?? ""))) throw error;
      await file.truncate();
    }
  }
}

/** In one go: what is appended meanwhile does not matter. */
async function fetchAsItIs(connection: Connection, content: Content, signal: AbortSignal | undefined): Promise<EntryInfo> {
  await insistently(connection, signal, async (options) => {
    const arrived = { bytes: 0 };
    try {
      delete content.entry;
      await readPiece(content, 0, undefined, arrived, options);
    } catch (error) {
      content.progress.add(-arrived.bytes);
      await content.file.truncate();
      throw error;
    }
  });
  return content.entry as EntryInfo;
}

async function fetchAll(connection: Connection, content: Content, { signal, parallel = 2 }: DownloadOptions): Promise<EntryInfo> {
  const first = await fetchPart(connection, content, 0, PART_BYTES, signal);
  const entry = content.entry as EntryInfo;
  const size = Number(entry.size);
  const rest = size > PART_BYTES ? split([{ start: PART_BYTES, end: size }]) : [];
  await inParallel(rest, parallel, signal, async ({ start, end }, leave) => {
    const bytes = await fetchPart(connection, content, start, end, leave);
    if (bytes < end - start) throw new ConnectError(`the file ended early: ${content.request.path}`, Code.DataLoss);
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
