import { open } from "node:fs/promises";
import type { Client } from "@connectrpc/connect";
import type { EntryInfo, FilesystemService } from "../gen/picod/v1/filesystem_pb.js";
import type { UploadOptions } from "./index.js";

const CHUNK_BYTES = 512 * 1024;

/** One chunk is in memory at a time. A file that grows meanwhile goes over as it was; one that shrinks is refused by its size. */
export async function upload(
  filesystem: Client<typeof FilesystemService>,
  localPath: string,
  remotePath: string,
  { signal, ...metadata }: UploadOptions,
): Promise<EntryInfo | undefined> {
  await using file = await open(localPath);
  const { size } = await file.stat();
  async function* requests() {
    yield { request: { case: "metadata" as const, value: { ...metadata, path: remotePath, size: BigInt(size) } } };
    for (let position = 0; position < size; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - position));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield { request: { case: "chunk" as const, value: buffer.subarray(0, bytesRead) } };
    }
  }
  const { entry } = await filesystem.writeFile(requests(), signal === undefined ? {} : { signal });
  return entry;
}
