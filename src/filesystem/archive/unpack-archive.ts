import type { Access } from "../access.js";
import { ArchiveInput, type UnpackSteps } from "./archive-input.js";
import { invalidArchive } from "./invalid-archive.js";
import { TarEntryReader } from "./read-tar-entry.js";
import type { ArchivedAttributes } from "./unpack-attributes.js";
import { AttributeSetter } from "./unpack-attributes.js";
import { EntryUnpacker } from "./unpack-entry.js";
import type { UnpackLimits } from "./unpack-limits.js";

export interface UnpackOptions {
  readonly access: Access;
  readonly preserveOwner: boolean;
  readonly limits: UnpackLimits;
  /** Run when the archive has been read and before directories get their modes: what it throws keeps them from it. */
  readonly beforeFinish: () => UnpackSteps;
}

/**
 * Unpacks an archive below an opened directory, up to its end. To be run by inSteps. Returns what it says about that directory itself.
 * @throws INVALID_ARCHIVE, ARCHIVE_LIMIT_REACHED, errno with the path in the archive.
 */
export function* unpackArchive(
  directoryFd: number,
  chunks: AsyncIterator<Uint8Array>,
  { access, preserveOwner, limits, beforeFinish }: UnpackOptions,
): UnpackSteps<((fd: number) => void) | undefined> {
  const input = new ArchiveInput(chunks, () => invalidArchive(reader.lastName, "the archive is cut off there"));
  const reader = new TarEntryReader(input, limits);
  const attributes = new AttributeSetter(access, preserveOwner);
  const unpacker = new EntryUnpacker(directoryFd, input, attributes);
  try {
    for (;;) {
      const entry = yield* reader.next();
      if (entry === undefined) break;
      yield* unpacker.unpack(entry);
      yield undefined;
    }
    yield* beforeFinish();
    yield* unpacker.finish();
    const { beginning } = unpacker;
    return beginning === undefined ? undefined : (fd) => attributes.apply(fd, beginning as ArchivedAttributes);
  } finally {
    unpacker.close();
  }
}
