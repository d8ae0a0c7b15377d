import { close, closeSync, ftruncateSync, write, writeSync } from "node:fs";
import { actingGuard } from "../../os/path-guard.js";
import { createTemporaryFile, discard } from "../../os/temporary-file.js";
import { placeFile } from "../copying/place-entry.js";
import { assertFileSize } from "../writing/file-size-limit.js";
import type { ArchiveInput, UnpackSteps } from "./archive-input.js";
import type { Extent } from "./data-extents.js";
import type { ArchivedEntry } from "./read-tar-entry.js";
import type { AttributeSetter } from "./unpack-attributes.js";

/** So much of a file is written at once instead of on a thread: for a small file the way there and back is most of the cost. */
const INLINE_BYTES = 64 * 1024;

/** Unpacks a file under a name of an opened directory. Until it is whole, what had the name keeps it. */
export function* unpackFile(
  directoryFd: number,
  name: string,
  entry: ArchivedEntry,
  input: ArchiveInput,
  attributes: AttributeSetter,
): UnpackSteps {
  const { sparse, storedBytes } = entry;
  const guard = actingGuard();
  guard?.assertName(directoryFd, name, "write");
  assertFileSize(guard, entry.name, sparse?.size ?? storedBytes);
  const file = createTemporaryFile(directoryFd);
  let named = false;
  try {
    if (sparse !== undefined) ftruncateSync(file.fd, sparse.size);
    for (const extent of sparse?.extents ?? [{ offset: 0, bytes: storedBytes }]) yield* writeExtent(file.fd, extent, input);
    attributes.apply(file.fd, entry);
    placeFile(file, name);
    named = true;
  } finally {
    if (!named) discard(file);
    // Freeing the blocks of a large file takes time: not on the event loop.
    if (named || storedBytes <= INLINE_BYTES) closeSync(file.fd);
    else close(file.fd, () => undefined);
  }
}

function* writeExtent(fd: number, { offset, bytes }: Extent, input: ArchiveInput): UnpackSteps {
  for (let at = offset; at < offset + bytes; ) {
    if (input.available === 0) yield input.more;
    const taken = input.take(offset + bytes - at);
    const position = at;
    if (bytes <= INLINE_BYTES) writeAllNow(fd, taken, position);
    else yield () => writeAll(fd, taken, position);
    at += taken.length;
  }
}

/** Loops because write(2) on a nearly full disk takes a part without an error; the next call has it. */
function writeAllNow(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}

async function writeAll(fd: number, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += await writeOnce(fd, bytes, done, position + done);
}

function writeOnce(fd: number, bytes: Uint8Array, from: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, from, bytes.length - from, position, (error, written) => (error ? reject(error) : resolve(written)));
  });
}
