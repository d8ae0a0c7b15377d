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

/** Fetches bytes of a file to the same place of the local one. @throws DATA_LOSS unless their length and checksum are right. */
export async function readPiece(
  content: Content,
  offset: number,
  length: number,
  arrived: { bytes: number },
  options: CallOptions,
): Promise<void> {
  const { filesystem, file, progress } = content;
  const hash = createHash("sha256");
  const ifEtag = content.entry?.etag ?? "";
  const range = { offset: BigInt(offset), length: BigInt(length) };
  const responses = filesystem.readFile({ ...content.request, ...range, ifEtag, checksum: true }, options);
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
    if (Number(response.value.bytes) === arrived.bytes && response.value.sha256 === hash.digest("hex")) return;
    throw new ConnectError("something else arrived than was sent", Code.DataLoss);
  }
  throw new ConnectError("the stream ended without its summary", Code.Unavailable);
}

async function writeAll(file: FileHandle, data: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < data.length; ) at += (await file.write(data, at, data.length - at, position + at)).bytesWritten;
}
