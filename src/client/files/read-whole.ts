import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { FilesystemService, ReadFileRequestSchema } from "../../gen/picod/v1/filesystem_pb.js";

/** A file, in memory. @throws DATA_LOSS unless length and checksum are right. */
export async function readWhole(
  filesystem: Client<typeof FilesystemService>,
  request: MessageInitShape<typeof ReadFileRequestSchema>,
  options: CallOptions,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const { response } of filesystem.readFile({ ...request, checksum: true }, options)) {
    if (response.case === "chunk") chunks.push(response.value);
    if (response.case !== "summary") continue;
    const content = Buffer.concat(chunks);
    const sha256 = createHash("sha256").update(content).digest("hex");
    if (BigInt(content.length) === response.value.bytes && sha256 === response.value.sha256) return content;
    throw new ConnectError("something else arrived than was sent", Code.DataLoss);
  }
  throw new ConnectError("the stream ended without its summary", Code.Unavailable);
}
