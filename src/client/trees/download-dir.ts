import { createHash, randomBytes } from "node:crypto";
import { mkdir, realpath, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import type { FilesystemService, ReadArchiveRequestSchema, ReadArchiveSummary } from "../../gen/picod/v1/filesystem_pb.js";
import { type Progress, ProgressTeller } from "../files/progress.js";
import { insistently } from "../insistently.js";
import type { Connection } from "../transport.js";
import { extractLocal } from "./extract-local.js";
import { mergeLocal } from "./merge-local.js";

type Selection = Omit<MessageInitShape<typeof ReadArchiveRequestSchema>, "path" | "gzip" | "$typeName">;

export type DownloadDirOptions = Selection & {
  readonly signal?: AbortSignal;
  /** Bytes of the archive that have arrived; `total` is 0. */
  readonly onProgress?: (progress: Progress) => void;
};

export interface DownloadedDir {
  /** Of the archive. */
  readonly summary: ReadArchiveSummary;
  /** Paths below the directory that were not made: links that lead out of it, and devices and FIFOs. */
  readonly skipped: readonly string[];
}

/** Unpacks beside the destination and moves it there when all of it is verified; begins anew after a broken connection. */
export async function downloadDir(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  path: string,
  localRoot: string,
  { signal, onProgress, ...request }: DownloadDirOptions,
): Promise<DownloadedDir> {
  const progress = new ProgressTeller(onProgress);
  const destination = await existing(resolve(localRoot));
  const temporary = join(dirname(destination), `.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const downloaded = await insistently(connection, signal, async (options) => {
      await rm(temporary, { recursive: true, force: true });
      await mkdir(temporary);
      progress.at(0);
      return receive(filesystem, { ...request, path }, temporary, (bytes) => progress.add(bytes), options);
    });
    await mergeLocal(Buffer.from(temporary), Buffer.from(destination));
    return downloaded;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** A link that the caller names is followed. */
async function existing(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
    throw error;
  }
}

async function receive(
  filesystem: Client<typeof FilesystemService>,
  request: MessageInitShape<typeof ReadArchiveRequestSchema>,
  directory: string,
  onBytes: (bytes: number) => void,
  options: CallOptions,
): Promise<DownloadedDir> {
  let summary: ReadArchiveSummary | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    const archive = filesystem.readArchive(request, options);
    const hash = createHash("sha256");
    for await (const { response } of archive) {
      if (response.case === "summary") summary = response.value;
      if (response.case !== "chunk") continue;
      hash.update(response.value);
      onBytes(response.value.length);
      yield response.value;
    }
    if (summary === undefined) throw new ConnectError("the stream ended without its summary", Code.Unavailable);
    if (summary.sha256 !== hash.digest("hex")) throw new ConnectError("something else arrived than was sent", Code.DataLoss);
  }
  const all = chunks();
  try {
    const truncated = () => new ConnectError("the archive is cut off", Code.DataLoss);
    const { skipped } = await extractLocal(all, directory, truncated);
    // What comes behind the end of the archive, and the summary.
    while (!(await all.next()).done);
    return { summary: summary as unknown as ReadArchiveSummary, skipped };
  } catch (error) {
    throw error instanceof PicodError ? new ConnectError(error.message, Code.DataLoss) : error;
  } finally {
    await all.return(undefined);
  }
}
