import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { EntryInfo, FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import type { ProgressTeller } from "./progress.js";

/** A file of the sandbox and where it goes. */
export interface Content {
  readonly filesystem: Client<typeof FilesystemService>;
  readonly request: { readonly path: string; readonly user: string };
  readonly file: FileHandle;
  readonly progress: ProgressTeller;
  /** Once something has come of it: no piece of another version is taken. */
  entry?: EntryInfo;
}

/** The file was written while it was read: what has come may be of two versions. */
export class FileChangedError extends ConnectError {
  constructor(path: string) {
    super(`the file changed while it was read: ${path}`, Code.FailedPrecondition);
  }
}

/**
 * Fetches bytes of a file to the same place of the local one: `length` of them, or all to the end as they are when they are read.
 * @throws FileChangedError; DATA_LOSS unless their length and checksum are right.
 */
export async function readPiece(
  content: Content,
  offset: number,
  length: number | undefined,
  arrived: { bytes: number },
  options: CallOptions,
): Promise<void> {
  const { filesystem, file, progress, request } = content;
  const hash = createHash("sha256");
  const ifEtag = content.entry?.etag ?? "";
  const range = length === undefined ? {} : { offset: BigInt(offset), length: BigInt(length) };
  const responses = filesystem.readFile({ ...request, ...range, ifEtag, checksum: true }, options);
  for await (const { response } of responses) {
    if (response.case === "metadata" && response.value.entry !== undefined) {
      content.entry ??= response.value.entry;
      progress.total = Number(content.entry.size);
    }
    if (response.case === "chunk") {
      hash.update(response.value);
      await writeAll(file, response.value, offset + arrived.bytes);
      arrived.bytes += response.value.length;
      progress.add(response.value.length);
    }
    if (response.case !== "summary") continue;
    const { bytes, sha256, etag } = response.value;
    if (Number(bytes) !== arrived.bytes || sha256 !== hash.digest("hex")) {
      throw new ConnectError("something else arrived than was sent", Code.DataLoss);
    }
    // An older daemon tells none, and files of /proc have another each time.
    const { entry } = content;
    const isAnother = etag !== "" && entry?.size !== 0n && etag !== entry?.etag;
    if (isAnother && length !== undefined) throw new FileChangedError(request.path);
    return;
  }
  throw new ConnectError("the stream ended without its summary", Code.Unavailable);
}

async function writeAll(file: FileHandle, data: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < data.length; ) at += (await file.write(data, at, data.length - at, position + at)).bytesWritten;
}
