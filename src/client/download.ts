import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { Client } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FilesystemService } from "../gen/picod/v1/filesystem_pb.js";

export interface DownloadOptions {
  readonly user?: string;
  readonly signal?: AbortSignal;
}

/** The content goes to a temporary file beside the destination, which takes the name when length and checksum are right. */
export async function download(
  filesystem: Client<typeof FilesystemService>,
  remotePath: string,
  localPath: string,
  { user = "", signal }: DownloadOptions,
): Promise<void> {
  const temporary = `${localPath}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await using file = await open(temporary, "wx");
    const responses = filesystem.readFile({ path: remotePath, user, checksum: true }, signal === undefined ? {} : { signal });
    await receive(responses, file);
    await rename(temporary, localPath);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function receive(responses: ReturnType<Client<typeof FilesystemService>["readFile"]>, file: FileHandle): Promise<void> {
  const hash = createHash("sha256");
  let bytes = 0n;
  for await (const { response } of responses) {
    if (response.case === "chunk") {
      hash.update(response.value);
      bytes += BigInt(response.value.length);
      await file.appendFile(response.value);
    }
    if (response.case !== "summary") continue;
    if (response.value.bytes === bytes && response.value.sha256 === hash.digest("hex")) return;
    throw new ConnectError("something else arrived than was sent", Code.DataLoss);
  }
  throw new ConnectError("the download ended without its summary", Code.DataLoss);
}
