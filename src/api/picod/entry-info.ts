import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryInfo, FileKind } from "../../filesystem/entry-info.js";
import { type EntryInfoSchema, FileType } from "../../gen/picod/v1/filesystem_pb.js";

const TYPE_OF_KIND: Readonly<Record<FileKind, FileType>> = {
  file: FileType.FILE,
  directory: FileType.DIRECTORY,
  symlink: FileType.SYMLINK,
  fifo: FileType.FIFO,
  socket: FileType.SOCKET,
  "character-device": FileType.CHARACTER_DEVICE,
  "block-device": FileType.BLOCK_DEVICE,
};

const NS_PER_SECOND = 1_000_000_000n;

export function toEntryInfo(entry: EntryInfo): MessageInitShape<typeof EntryInfoSchema> {
  const { kind, symlinkTarget, modifiedTimeNs, ...same } = entry;
  // Rounded down, so that the nanoseconds of times before 1970 are positive too.
  const nanos = ((modifiedTimeNs % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  const modifiedTime = { seconds: (modifiedTimeNs - nanos) / NS_PER_SECOND, nanos: Number(nanos) };
  return { ...same, type: TYPE_OF_KIND[kind], modifiedTime, ...(symlinkTarget === undefined ? {} : { symlinkTarget }) };
}
