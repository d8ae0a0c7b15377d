import { close, fstatSync } from "node:fs";
import type { ArchiveOutput } from "./archive-output.js";
import { dataExtents, type Extent } from "./data-extents.js";
import type { EntryPacker, OpenedFile } from "./pack-entry.js";
import { paddingAfter } from "./tar-block.js";

/**
 * Puts a file into the output that has to be waited for, and yields chunks as they become full. Reads ahead: while one chunk is being
 * sent the next is filled. Of a file that grows meanwhile its old size is taken. Closes the descriptor. @throws FILE_SHRANK, errno.
 */
export async function* packContent(packer: EntryPacker, output: ArchiveOutput, file: OpenedFile): AsyncGenerator<Buffer> {
  const { fd, relativePath } = file;
  let pending: Promise<number> | undefined;
  try {
    const size = Number(file.stats.size);
    const extents = await dataExtents(fd, size);
    const stored = putHeaders(packer, output, file, size, extents);
    for (const { offset, bytes } of extents) {
      const end = offset + bytes;
      for (let at = offset; at < end; ) {
        if (output.isFull) yield output.take();
        pending ??= output.readFrom(fd, at, end - at);
        const got = await pending;
        pending = undefined;
        if (got === 0) throw packer.shrank(relativePath, at, size);
        at += got;
        if (!output.isFull) continue;
        const chunk = output.take();
        if (at < end) pending = output.readFrom(fd, at, end - at);
        yield chunk;
      }
    }
    // What is gone looks like a hole to whoever asks for the data.
    const { size: left } = fstatSync(fd);
    if (left < size) throw packer.shrank(relativePath, left, size);
    output.padAfter(stored);
  } finally {
    // The read ahead uses descriptor and buffer until it is done, also when the caller has gone.
    await pending?.catch(() => undefined);
    close(fd, () => undefined);
  }
}

/** Returns the bytes of content that they announce, and of which a map has already been put. */
function putHeaders(
  packer: EntryPacker,
  output: ArchiveOutput,
  file: OpenedFile,
  size: number,
  extents: readonly Extent[],
): number {
  const data = extents.reduce((sum, { bytes }) => sum + bytes, 0);
  if (data === size) {
    packer.putHeader(file, size);
    return size;
  }
  const map = sparseMap(size, extents);
  packer.putHeader(file, map.length + data, size);
  output.append(map);
  return map.length + data;
}

/** GNU's format 1.0: the number of extents, then offset and length of each, in lines; filled up to a block. */
function sparseMap(size: number, extents: readonly Extent[]): Buffer {
  // As GNU tar has it, an empty extent at the end of the file says where a last hole ends.
  const last = extents.at(-1);
  const all = last === undefined || last.offset + last.bytes < size ? [...extents, { offset: size, bytes: 0 }] : extents;
  const lines = `${all.length}\n${all.map(({ offset, bytes }) => `${offset}\n${bytes}\n`).join("")}`;
  return Buffer.from(lines + "\0".repeat(paddingAfter(lines.length)), "latin1");
}
