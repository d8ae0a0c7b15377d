import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type { FilesystemService, WriteArchiveMetadataSchema, WriteArchiveResponse } from "../../gen/picod/v1/filesystem_pb.js";

/** One WriteArchive. @throws ConnectError; what making the archive throws. */
export async function sendArchive(
  filesystem: Client<typeof FilesystemService>,
  metadata: MessageInitShape<typeof WriteArchiveMetadataSchema>,
  archive: AsyncIterable<Buffer<ArrayBuffer>>,
  onBytes: (bytes: number) => void,
  options: CallOptions,
): Promise<WriteArchiveResponse> {
  let local: { error: unknown } | undefined;
  let isOver = false;
  async function* requests() {
    yield { request: { case: "metadata" as const, value: metadata } };
    try {
      for await (const value of archive) {
        // The RPC library goes on asking for a while when the call has ended.
        if (isOver) return;
        yield { request: { case: "chunk" as const, value } };
        if (!isOver) onBytes(value.length);
      }
    } catch (error) {
      if (isOver) return;
      local = { error };
      throw error;
    }
  }
  try {
    return await filesystem.writeArchive(requests(), options);
  } catch (error) {
    // The RPC library makes an error of the connection of it.
    throw local === undefined ? error : (local as { error: unknown }).error;
  } finally {
    isOver = true;
  }
}
