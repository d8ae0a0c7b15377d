import { createHash, type Hash } from "node:crypto";
import { fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { posix } from "node:path";
import { PicodError } from "../errors/picod-error.js";
import { systemError, withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import { type ArchiveDestination, openInPlace, openStaged } from "./archive/archive-destination.js";
import type { UnpackSteps } from "./archive/archive-input.js";
import { gunzipChunks, isGzip } from "./archive/gunzip-chunks.js";
import { unpackArchive } from "./archive/unpack-archive.js";
import { tooMuch, UnpackLimits } from "./archive/unpack-limits.js";
import { isNamed } from "./copying/naming.js";
import { describeEntry, type EntryInfo } from "./entry-info.js";
import { inSteps } from "./walking/in-steps.js";

const DEFAULT_MAX_BYTES = 16n * 1024n ** 3n;
const DEFAULT_MAX_ENTRIES = 1_000_000n;
/** So much may follow the end of an archive: tar(1) fills up to 10 KiB, and to more when asked. */
const MAX_TRAILING_BYTES = 1024 * 1024;

export interface WriteArchiveOptions {
  /** Replace the directory as a whole, or change nothing. */
  readonly atomic?: boolean;
  /** Bytes of content; 16 GiB by default. */
  readonly maxBytes?: bigint | undefined;
  /** 1,000,000 by default. */
  readonly maxEntries?: bigint | undefined;
  /** Only for root. */
  readonly preserveOwner?: boolean;
  /** Lower-case hexadecimal digest of all chunks. */
  readonly sha256?: string | undefined;
}

export interface WriteArchiveResult {
  readonly entry: EntryInfo;
  readonly entries: bigint;
  readonly bytes: bigint;
  readonly sha256: string;
}

/**
 * Unpacks an archive into a directory, which is made when it is missing. After an error nothing has changed with `atomic`; otherwise what
 * came before it stays.
 * @throws INVALID_ARCHIVE, ARCHIVE_LIMIT_REACHED, CHECKSUM_MISMATCH, EPERM, errno.
 */
export async function writeArchive(
  access: Access,
  path: string,
  options: WriteArchiveOptions,
  chunks: AsyncIterable<Uint8Array>,
  abortSignal: AbortSignal,
): Promise<WriteArchiveResult> {
  if (options.preserveOwner && access.user.uid !== 0) throw systemError("chown", path, osConstants.errno.EPERM);
  const hash = createHash("sha256");
  const limits = new UnpackLimits(options.maxBytes ?? DEFAULT_MAX_BYTES, options.maxEntries ?? DEFAULT_MAX_ENTRIES);
  const received = hashed(chunks, hash);
  const { entry, sha256 } = await inSteps(access, steps(access, path, options, received, hash, limits), abortSignal);
  return { entry, sha256, entries: limits.entries, bytes: limits.bytes };
}

function* steps(
  access: Access,
  path: string,
  options: WriteArchiveOptions,
  received: AsyncIterator<Uint8Array>,
  hash: Hash,
  limits: UnpackLimits,
): UnpackSteps<{ entry: EntryInfo; sha256: string }> {
  const destination = openDestination(access, path, options.atomic ?? false);
  const archive = decompressed(received);
  let completed = false;
  let sha256 = "";
  try {
    const beforeFinish = function* (): UnpackSteps {
      yield () => drain(archive, received);
      sha256 = hash.digest("hex");
      if (options.sha256 === undefined || options.sha256 === sha256) return;
      throw new PicodError("CHECKSUM_MISMATCH", `cannot unpack into ${path}: the archive has sha256 ${sha256}`, { path });
    };
    const { preserveOwner = false } = options;
    const setAttributes = yield* unpackArchive(destination.fd, archive, { access, preserveOwner, limits, beforeFinish });
    yield* destination.complete(setAttributes);
    completed = true;
    return { entry: describeEntry(path, fstatSync(destination.fd, { bigint: true }), access.users), sha256 };
  } catch (error) {
    throw isNamed(error) ? error : withPath(error, posix.join(path, pathOf(error)));
  } finally {
    archive.return(undefined).catch(() => undefined);
    try {
      if (!completed) yield* destination.undo();
    } finally {
      destination.close();
    }
  }
}

/** What an error is about, below the directory. */
function pathOf(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).path ?? "") : "";
}

function openDestination(access: Access, path: string, atomic: boolean): ArchiveDestination {
  try {
    return atomic ? openStaged(access, path) : openInPlace(access, path);
  } catch (error) {
    throw withPath(error, path);
  }
}

async function* hashed(chunks: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    if (chunk.length > 0) yield chunk;
  }
  return undefined;
}

/** The archive itself, whether or not it comes compressed. */
async function* decompressed(received: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let beginning = Buffer.alloc(0);
  while (beginning.length < 2) {
    const { done, value } = await received.next();
    if (done) break;
    beginning = Buffer.concat([beginning, value]);
  }
  const all = startingWith(beginning, received);
  if (isGzip(beginning)) yield* gunzipChunks(all);
  else yield* all;
  return undefined;
}

async function* startingWith(beginning: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  if (beginning.length > 0) yield beginning;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  return undefined;
}

/** Takes what follows the end of the archive, so that its checksum is that of everything. @throws ARCHIVE_LIMIT_REACHED. */
async function drain(archive: AsyncIterator<Uint8Array>, received: AsyncIterator<Uint8Array>): Promise<void> {
  for (let bytes = 0, next = await archive.next(); !next.done; next = await archive.next()) {
    bytes += next.value.length;
    if (bytes > MAX_TRAILING_BYTES) throw tooMuch(`more than ${MAX_TRAILING_BYTES} bytes after its end`);
  }
  while (!(await received.next()).done);
}
