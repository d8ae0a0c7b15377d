import { createHash } from "node:crypto";
import { type BigIntStats, closeSync, constants, fstatSync } from "node:fs";
import { posix } from "node:path";
import { PicodError } from "../errors/picod-error.js";
import { readXattrs } from "../os/attributes.js";
import { withFileRightsOf } from "../os/credentials.js";
import { isDirectory } from "../os/directory.js";
import { errnoName, withPath } from "../os/system-error.js";
import { isTemporaryName } from "../os/temporary-name.js";
import type { Access } from "./access.js";
import { ArchiveOutput } from "./archive/archive-output.js";
import { gzipChunks } from "./archive/gzip-chunks.js";
import { packContent } from "./archive/pack-content.js";
import { type DescribedDirectory, describeDirectory, EntryPacker, type OpenedFile } from "./archive/pack-entry.js";
import { BLOCK_BYTES } from "./archive/tar-block.js";
import { describeEntry, type EntryInfo } from "./entry-info.js";
import { addIgnoreFiles, addIgnoreFilesOf } from "./patterns/ignore-files.js";
import type { PathFilter } from "./patterns/path-filter.js";
import { inTurns, type WalkedEntry, walk } from "./walking/walk.js";

const MAX_CHUNK_BYTES = 1024 * 1024;
const MAX_NAMED = 100;

export interface ReadArchiveOptions {
  readonly gzip?: boolean;
  /** Which paths below the directory; all by default. */
  readonly filter?: PathFilter | undefined;
  /** Passes over what cannot be read. */
  readonly skipUnreadable?: boolean;
}

export interface Unreadable {
  readonly path: string;
  readonly error: unknown;
}

export type ReadArchiveEvent =
  | { readonly kind: "opened"; readonly entry: EntryInfo }
  /** Valid until the next event is asked for: the buffer is used again. At most 1 MiB. */
  | { readonly kind: "chunk"; readonly chunk: Uint8Array }
  | {
      readonly kind: "summary";
      readonly entries: bigint;
      readonly bytes: bigint;
      readonly sha256: string;
      readonly unreadableCount: bigint;
      readonly unreadable: readonly Unreadable[];
    };

/**
 * Archives a directory with all that is in it, or a file: `opened`, chunks of a tar archive, `summary`. Sockets and PicoD's own temporary
 * files are left out. Directories on the way to what the filter includes are in it too. Opening never blocks.
 * @throws NOT_A_REGULAR_FILE, FILE_SHRANK, errno of open(2) and read(2).
 */
export async function* readArchive(
  access: Access,
  path: string,
  options: ReadArchiveOptions,
  abortSignal: AbortSignal,
): AsyncGenerator<ReadArchiveEvent> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
  const fd = withFileRightsOf(access, () => access.root.open(path, flags));
  const archive = new ArchiveReader(access, path, fd, options, abortSignal);
  try {
    archive.assertArchivable();
    yield { kind: "opened", entry: archive.entry };
    const hash = createHash("sha256");
    let bytes = 0n;
    for await (const chunks of options.gzip ? gzipChunks(archive.chunks()) : archive.chunks()) {
      for (let at = 0; at < chunks.length; at += MAX_CHUNK_BYTES) {
        const chunk = chunks.subarray(at, at + MAX_CHUNK_BYTES);
        hash.update(chunk);
        bytes += BigInt(chunk.length);
        yield { kind: "chunk", chunk };
      }
    }
    const { entries, unreadableCount, unreadable } = archive;
    yield { kind: "summary", entries, bytes, sha256: hash.digest("hex"), unreadableCount, unreadable };
  } catch (error) {
    throw withPathUnlessNamed(error, path);
  } finally {
    archive.close();
  }
}

function withPathUnlessNamed(error: unknown, path: string): unknown {
  return errnoName(error) !== undefined && (error as NodeJS.ErrnoException).path?.startsWith("/") ? error : withPath(error, path);
}

class ArchiveReader {
  readonly entry: EntryInfo;
  readonly #stats: BigIntStats;
  readonly unreadable: Unreadable[] = [];
  unreadableCount = 0n;
  readonly #access: Access;
  readonly #path: string;
  /** Of a directory, or of a file until its content is read. */
  #fd: number | undefined;
  readonly #options: ReadArchiveOptions;
  readonly #abortSignal: AbortSignal;
  readonly #output = new ArchiveOutput();
  readonly #packer: EntryPacker;
  /** Directories that were come through and are not in the archive yet, outermost first. */
  #passed: DescribedDirectory[] = [];

  constructor(access: Access, path: string, fd: number, options: ReadArchiveOptions, abortSignal: AbortSignal) {
    this.#access = access;
    this.#path = path;
    this.#fd = fd;
    this.#options = options;
    this.#abortSignal = abortSignal;
    this.#stats = fstatSync(fd, { bigint: true });
    this.entry = describeEntry(path, this.#stats, access.users);
    const above = this.entry.kind === "directory" ? path : posix.dirname(path);
    this.#packer = new EntryPacker(this.#output, access.users, above, this);
  }

  get entries(): bigint {
    return this.#packer.entries;
  }

  assertArchivable(): void {
    const { kind } = this.entry;
    if (kind === "directory" || kind === "file") return;
    throw new PicodError("NOT_A_REGULAR_FILE", `cannot archive ${this.#path}: it is a ${kind}`, { path: this.#path, kind });
  }

  async *chunks(): AsyncGenerator<Buffer> {
    const fd = this.#fd as number;
    if (this.entry.kind === "directory") {
      yield* this.#directory(fd);
    } else {
      this.#fd = undefined;
      const file = this.#packer.packOpened(this.entry.name, fd, this.#stats);
      if (file !== undefined) yield* packContent(this.#packer, this.#output, file);
    }
    this.#output.appendZeros(2 * BLOCK_BYTES);
    yield this.#output.take();
  }

  async *#directory(fd: number): AsyncGenerator<Buffer> {
    this.#packer.packDirectory({ relativePath: ".", stats: this.#stats, xattrs: readXattrs(fd, "user.") });
    const { filter } = this.#options;
    const onUnreadable = (relativePath: string, error: unknown) => this.onUnreadable(relativePath, error);
    const enters = (entry: WalkedEntry) => {
      if (isTemporaryName(entry.name) || filter?.enters(entry.relativePath) === false) return false;
      if (filter?.usesIgnoreFiles) addIgnoreFilesOf(filter, entry, onUnreadable);
      return true;
    };
    if (filter?.usesIgnoreFiles) withFileRightsOf(this.#access, () => addIgnoreFiles(filter, fd, "", onUnreadable));
    const steps = walk(fd, { enters, onUnreadable });
    // A turn ends with what has to be waited for.
    for await (const [stop] of inTurns(this.#access, steps, 1, this.#abortSignal, (entry) => this.#take(entry))) {
      if (stop !== undefined && stop !== "full") yield* packContent(this.#packer, this.#output, stop);
      if (this.#output.isFull) yield this.#output.take();
    }
  }

  #take(entry: WalkedEntry): OpenedFile | "full" | undefined {
    if (isTemporaryName(entry.name)) return undefined;
    const directory = isDirectory(entry.stats);
    this.#passed = this.#passed.filter(({ relativePath }) => entry.relativePath.startsWith(`${relativePath}/`));
    if (this.#options.filter?.includes(entry.relativePath, directory) === false) {
      if (directory) this.#passed.push(describeDirectory(entry));
      return undefined;
    }
    for (const passed of this.#passed.splice(0)) this.#packer.packDirectory(passed);
    return this.#packer.pack(entry) ?? (this.#output.isFull ? "full" : undefined);
  }

  onUnreadable(relativePath: string, error: unknown): void {
    const path = posix.join(this.#path, relativePath);
    if (!this.#options.skipUnreadable) throw withPath(error, path);
    this.unreadableCount++;
    if (this.unreadable.length < MAX_NAMED) this.unreadable.push({ path, error });
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}
