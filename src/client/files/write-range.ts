import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type { FilesystemService, WriteFileMetadataSchema, WriteFileResponse } from "../../gen/picod/v1/filesystem_pb.js";
import type { LocalSource } from "./local-source.js";
import type { ProgressTeller } from "./progress.js";
import type { Range } from "./ranges.js";

/** One call with one range of a local file. @throws ConnectError; what reading the file throws. */
export async function writeRange(
  filesystem: Client<typeof FilesystemService>,
  source: LocalSource,
  metadata: MessageInitShape<typeof WriteFileMetadataSchema>,
  { start, end }: Range,
  progress: ProgressTeller,
  options: CallOptions,
): Promise<WriteFileResponse> {
  let local: { error: unknown } | undefined;
  let isOver = false;
  async function* requests() {
    yield { request: { case: "metadata" as const, value: { ...metadata, size: BigInt(end - start) } } };
    try {
      for await (const value of source.read(start, end)) {
        // The RPC library goes on asking for a while when the call has ended.
        if (isOver) return;
        yield { request: { case: "chunk" as const, value } };
        if (!isOver) progress.add(value.length);
      }
    } catch (error) {
      if (isOver) return;
      local = { error };
      throw error;
    }
  }
  try {
    return await filesystem.writeFile(requests(), options);
  } catch (error) {
    // The RPC library makes an error of the connection of it.
    throw local === undefined ? error : (local as { error: unknown }).error;
  } finally {
    isOver = true;
  }
}
