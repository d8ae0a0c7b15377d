import { constants } from "node:fs";
import { open, readlink } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { encodeTarHeader, NO_XATTRS, type TarEntry } from "../../filesystem/archive/encode-tar-header.js";
import { BLOCK_BYTES, paddingAfter, TYPE } from "../../filesystem/archive/tar-block.js";
import { decodePath } from "../../os/path-bytes.js";
import type { LocalEntry } from "./walk-local.js";

const READ_BYTES = 256 * 1024;
const CHUNK_BYTES = 512 * 1024;

/** A tar archive of local files, directories and links; of a file that grows meanwhile its old size. Other things are left out. */
export async function* packLocal(entries: AsyncIterable<LocalEntry> | Iterable<LocalEntry>): AsyncGenerator<Buffer<ArrayBuffer>> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of blocks(entries)) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < CHUNK_BYTES) continue;
    yield Buffer.concat(pieces);
    [pieces, bytes] = [[], 0];
  }
  // Two blocks of zeros end it.
  yield Buffer.concat([...pieces, Buffer.alloc(2 * BLOCK_BYTES)]);
}

async function* blocks(entries: AsyncIterable<LocalEntry> | Iterable<LocalEntry>): AsyncGenerator<Buffer> {
  /** First names of files that have more. */
  const linked = new Map<string, string>();
  for await (const entry of entries) {
    const { relativePath, path, stats } = entry;
    const identity = `${stats.dev}:${stats.ino}`;
    const first = linked.get(identity);
    if (stats.isDirectory()) yield header(entry, { type: TYPE.directory, path: `${relativePath}/` });
    else if (first !== undefined) yield header(entry, { type: TYPE.hardLink, linkName: first });
    else if (stats.isSymbolicLink()) {
      const linkName = decodePath(await readlink(path, { encoding: "buffer" }));
      yield header(entry, { type: TYPE.symlink, linkName });
    } else if (stats.isFile()) {
      yield* fileBlocks(entry);
      if (stats.nlink > 1n) linked.set(identity, relativePath);
    }
  }
}

async function* fileBlocks(entry: LocalEntry): AsyncGenerator<Buffer> {
  // What took the name of the file meanwhile is neither followed nor waited for.
  await using file = await open(entry.path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await file.stat({ bigint: true });
  const size = Number(stats.size);
  yield header({ ...entry, stats }, { type: TYPE.file, storedBytes: size });
  for (let at = 0; at < size; ) {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, size - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new ConnectError(`the file shrank while it was sent: ${entry.path}`, Code.DataLoss);
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
  yield Buffer.alloc(paddingAfter(size));
}

function header({ relativePath, stats }: LocalEntry, more: Partial<TarEntry> & { readonly type: string }): Buffer {
  return encodeTarHeader({
    path: relativePath,
    mode: Number(stats.mode) & 0o7777,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    userName: "",
    groupName: "",
    modifiedTimeNs: stats.mtimeNs,
    storedBytes: 0,
    linkName: "",
    xattrs: NO_XATTRS,
    ...more,
  });
}
