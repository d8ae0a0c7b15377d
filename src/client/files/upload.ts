import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { EntryInfo, FilesystemService, WriteFileMetadataSchema } from "../../gen/picod/v1/filesystem_pb.js";
import { insistently } from "../insistently.js";
import { reasonOf } from "../reason-of.js";
import { isBroken } from "../retries.js";
import type { Connection } from "../transport.js";
import { inParallel } from "./in-parallel.js";
import { LocalSource } from "./local-source.js";
import { type Progress, ProgressTeller } from "./progress.js";
import { gaps, type Range, split } from "./ranges.js";
import { writeRange } from "./write-range.js";

type Metadata = MessageInitShape<typeof WriteFileMetadataSchema>;

export type UploadOptions = Pick<Metadata, "mode" | "user" | "durability" | "precondition"> & {
  readonly signal?: AbortSignal;
  /** Called as bytes are handed to the connection. */
  readonly onProgress?: (progress: Progress) => void;
  /** Parts of 16 MiB that are under way at a time. Default 1: in order, both sides hash what they read anyway. */
  readonly parallel?: number;
};

/** So much goes over in one call, unless that breaks. */
const WHOLE_BYTES = 8 * 1024 * 1024;
/** So long the word that an upload is given up may take. */
const FAREWELL_MS = 1_000;
/** A call that broke is still there for the daemon, or ended later than it was asked what has arrived. */
const NOT_YET_WHOLE = ["UPLOAD_BUSY", "UPLOAD_INCOMPLETE"];

/** Stores a local file whole or not at all, and goes on where a broken connection has ended. */
export async function upload(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  localPath: string,
  remotePath: string,
  options: UploadOptions,
): Promise<EntryInfo> {
  await using source = await LocalSource.open(localPath);
  const { signal, precondition } = options;
  // Awaited here, as long as the source is open. A condition may no longer hold because of the very write whose answer was lost; a commit can be repeated.
  if (source.size > WHOLE_BYTES || precondition !== undefined)
    return await inParts(filesystem, connection, source, remotePath, options);
  try {
    return await inOneCall(filesystem, source, remotePath, options);
  } catch (error) {
    if (!(error instanceof ConnectError) || !isBroken(error) || signal?.aborted) throw error;
    return await inParts(filesystem, connection, source, remotePath, options);
  }
}

async function inOneCall(
  filesystem: Client<typeof FilesystemService>,
  source: LocalSource,
  path: string,
  { signal, onProgress, parallel: _, ...rest }: UploadOptions,
): Promise<EntryInfo> {
  const progress = new ProgressTeller(onProgress);
  progress.total = source.size;
  const sha256 = await source.sha256();
  const metadata = { ...rest, path, sha256 };
  const call = signal === undefined ? {} : { signal };
  const { entry } = await writeRange(filesystem, source, metadata, { start: 0, end: source.size }, progress, call);
  return entry as EntryInfo;
}

async function inParts(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  source: LocalSource,
  path: string,
  { signal, onProgress, parallel = 1, mode, ...rest }: UploadOptions,
): Promise<EntryInfo> {
  const uploadId = randomUUID();
  const { size } = source;
  const progress = new ProgressTeller(onProgress);
  progress.total = size;
  let missing: readonly Range[] | undefined = [{ start: 0, end: size }];
  let left = size;
  const { user = "" } = rest;
  const part = { path, user, uploadId, ...(mode === undefined ? {} : { mode }) };

  const attempt = async (options: CallOptions, succeeded: () => void) => {
    missing ??= await missingOf(filesystem, uploadId, user, size, options);
    const total = missing.reduce((sum, { start, end }) => sum + end - start, 0);
    if (total < left) succeeded();
    left = total;
    progress.at(size - total);
    const ranges = parallel > 1 ? split(missing) : missing;
    missing = undefined;
    await inParallel(ranges, parallel, options.signal, async (range, leave) => {
      const metadata = { ...part, offset: BigInt(range.start) };
      await writeRange(filesystem, source, metadata, range, progress, { signal: leave });
    });
    // What has arrived is whole, as far as is known: a commit whose answer is lost is begun with again.
    missing = [];
    const sha256 = await source.sha256();
    const { entry } = await filesystem.commitUpload({ ...rest, uploadId, size: BigInt(size), sha256 }, options);
    return entry as EntryInfo;
  };

  try {
    return await insistently(connection, signal, async (options, retries) => {
      try {
        return await attempt(options, () => retries.succeeded());
      } catch (error) {
        const reason = reasonOf(error);
        if (reason !== "UPLOAD_NOT_FOUND" && !NOT_YET_WHOLE.includes(reason ?? "")) throw error;
        // The daemon was restarted, or knows of bytes that are missing: ask it.
        missing = undefined;
        throw new ConnectError("the upload is not whole yet", Code.Unavailable, undefined, undefined, error);
      }
    });
  } catch (error) {
    connection.beforeClosing(filesystem.abortUpload({ uploadId, user }, { timeoutMs: FAREWELL_MS }).catch(() => undefined));
    throw error;
  }
}

/** What of the upload has not arrived; all of it when the daemon does not know the upload: it was restarted. */
async function missingOf(
  filesystem: Client<typeof FilesystemService>,
  uploadId: string,
  user: string,
  size: number,
  options: CallOptions,
): Promise<Range[]> {
  try {
    const { upload } = await filesystem.getUpload({ uploadId, user }, options);
    return gaps(upload?.received ?? [], size);
  } catch (error) {
    if (reasonOf(error) !== "UPLOAD_NOT_FOUND") throw error;
    return [{ start: 0, end: size }];
  }
}
