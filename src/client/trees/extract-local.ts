import { chmod, type FileHandle, link, lutimes, mkdir, open, symlink, utimes } from "node:fs/promises";
import { ArchiveInput, type UnpackSteps } from "../../filesystem/archive/archive-input.js";
import { invalidArchive } from "../../filesystem/archive/invalid-archive.js";
import { type ArchivedEntry, TarEntryReader } from "../../filesystem/archive/read-tar-entry.js";
import { TYPE } from "../../filesystem/archive/tar-block.js";
import { UnpackLimits } from "../../filesystem/archive/unpack-limits.js";
import { unpackPath } from "../../filesystem/archive/unpack-path.js";
import { pathBytes } from "../../os/path-bytes.js";
import { leadsInside } from "./link-inside.js";
import { localPath } from "./walk-local.js";

const WRITE_BYTES = 1024 * 1024;
const OWNER_BITS = 0o700;

export interface Extracted {
  entries: number;
  /** Paths that were not made: links that lead out, and what is neither file, directory nor link. */
  readonly skipped: string[];
}

/**
 * Unpacks a tar archive into a directory that is empty and nobody else's. Symbolic links are made when all the rest is there, so that
 * nothing goes through them. @throws PicodError for a malformed or forbidden entry; what node:fs does.
 */
export async function extractLocal(chunks: AsyncIterator<Uint8Array>, root: string, truncated: () => Error): Promise<Extracted> {
  const input = new ArchiveInput(chunks, truncated);
  const reader = new TarEntryReader(input, new UnpackLimits(BigInt(Number.MAX_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)));
  const extracted: Extracted = { entries: 0, skipped: [] };
  const links: [path: string | Buffer, entry: ArchivedEntry][] = [];
  const directories: [path: string | Buffer, entry: ArchivedEntry][] = [];
  for (let entry = await taken(reader.next()); entry !== undefined; entry = await taken(reader.next())) {
    const components = unpackPath(entry.name, entry.name, "its name");
    const path = localPath(root, components.join("/"));
    extracted.entries++;
    if (components.length > 1) await mkdir(localPath(root, components.slice(0, -1).join("/")), { recursive: true });
    if (entry.type === TYPE.directory) {
      await mkdir(path, { recursive: true });
      directories.push([path, entry]);
    } else if (components.length === 0) {
      throw invalidArchive(entry.name, "its name is that of the directory to unpack into");
    } else if (entry.type === TYPE.file || entry.type === TYPE.contiguousFile || entry.type === TYPE.gnuSparse) {
      await extractFile(input, entry, path);
    } else if (entry.type === TYPE.hardLink) {
      await link(localPath(root, unpackPath(entry.name, entry.linkName, "what it is a link to").join("/")), path);
    } else if (entry.type === TYPE.symlink && leadsInside(components, entry.linkName)) {
      links.push([path, entry]);
    } else {
      extracted.skipped.push(components.join("/"));
    }
    if (entry.type === TYPE.directory || extracted.skipped.at(-1) === components.join("/"))
      await taken(input.skip(entry.storedBytes));
    await taken(input.skip(entry.padding));
  }
  for (const [path, entry] of links) {
    await symlink(pathBytes(entry.linkName), path);
    await lutimes(path, seconds(entry), seconds(entry));
  }
  for (const [path, entry] of directories.toReversed()) {
    await chmod(path, (entry.mode & 0o777) | OWNER_BITS);
    await utimes(path, seconds(entry), seconds(entry));
  }
  return extracted;
}

async function extractFile(input: ArchiveInput, entry: ArchivedEntry, path: string | Buffer): Promise<void> {
  // Exclusively: what has the name already is not written through.
  await using file = await open(path, "wx", OWNER_BITS);
  const extents = entry.sparse?.extents ?? [{ offset: 0, bytes: entry.storedBytes }];
  for (const { offset, bytes } of extents) await extractExtent(input, file, offset, offset + bytes);
  if (entry.sparse !== undefined) await file.truncate(entry.sparse.size);
  await file.chmod(entry.mode & 0o777);
  await file.utimes(seconds(entry), seconds(entry));
}

async function extractExtent(input: ArchiveInput, file: FileHandle, start: number, end: number): Promise<void> {
  for (let at = start; at < end; ) {
    if (input.available === 0) await input.more();
    const piece = input.take(Math.min(WRITE_BYTES, end - at));
    for (let done = 0; done < piece.length; ) {
      done += (await file.write(piece, done, piece.length - done, at + done)).bytesWritten;
    }
    at += piece.length;
  }
}

function seconds({ modifiedTimeNs }: ArchivedEntry): number {
  return Number(modifiedTimeNs) / 1e9;
}

async function taken<T>(steps: UnpackSteps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await value?.();
  }
}
