import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryInfo, FileKind } from "../../filesystem/entry-info.js";
import { type EntryInfoSchema, FileType } from "../../gen/picod/v1/filesystem_pb.js";
import { toTimestamp } from "../timestamp.js";

const TYPE_OF_KIND: Readonly<Record<FileKind, FileType>> = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  symlink: FileType.SYMLINK,
  fifo: FileType.FIFO,
  socket: FileType.SOCKET,
  "character-device": FileType.CHARACTER_DEVICE,
  "block-device": FileType.BLOCK_DEVICE,
};

export function toEntryInfo(entry: EntryInfo): MessageInitShape<typeof EntryInfoSchema> {
  const { kind, symlinkTarget, rawName, modifiedTimeNs, accessedTimeNs, xattrs, ...same } = entry;
  return {
    ...same,
    type: TYPE_OF_KIND[kind],
    modifiedTime: toTimestamp(modifiedTimeNs),
    accessedTime: toTimestamp(accessedTimeNs),
    ...(symlinkTarget === undefined ? {} : { symlinkTarget }),
    ...(xattrs === undefined ? {} : { xattrs: Object.fromEntries(xattrs) as Record<string, Uint8Array<ArrayBuffer>> }),
    ...(rawName === undefined ? {} : { rawName: rawName as Uint8Array<ArrayBuffer> }),
  };
}
