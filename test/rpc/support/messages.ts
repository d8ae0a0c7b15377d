import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { WriteFileRequestSchema } from "../../../src/gen/picod/v1/filesystem_pb.js";

export const EXECUTE = "/picod.v1.ProcessService/Execute";
export const STAT = "/picod.v1.FilesystemService/Stat";
export const READ_FILE = "/picod.v1.FilesystemService/ReadFile";
export const WRITE_FILE = "/picod.v1.FilesystemService/WriteFile";

/** Flags, length and content, as gRPC and Connect streams frame their messages. */
export function envelope(data: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

export function encode<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Uint8Array {
  return toBinary(schema, create(schema, init));
}

/** The whole body of an upload: metadata, then a message for each chunk. */
export function uploadBody(path: string, ...chunks: readonly string[]): Buffer {
  return partBody({ path }, ...chunks);
}

/** The same with more metadata than the path. */
export function partBody(
  value: { path: string; uploadId?: string; offset?: bigint; size?: bigint },
  ...chunks: readonly string[]
): Buffer {
  const metadata = encode(WriteFileRequestSchema, { request: { case: "metadata", value } });
  const messages = chunks.map((text) => encode(WriteFileRequestSchema, { request: { case: "chunk", value: Buffer.from(text) } }));
  return Buffer.concat([metadata, ...messages].map((message) => envelope(message)));
}
