import { type BigIntStats, closeSync, constants, fstatSync, readSync } from "node:fs";
import { posix } from "node:path";
import { PicodError } from "../../errors/picod-error.js";
import { readXattrs } from "../../os/attributes.js";
import { type FileStats, isDirectory } from "../../os/directory.js";
import { openIn, readLinkIn } from "../../os/root.js";
import type { UserDatabase } from "../../os/users.js";
import { type FileKind, kindOf } from "../entry-info.js";
import { passingOver, type WalkedEntry, type WalkOptions } from "../walking/walk.js";
import type { ArchiveOutput } from "./archive-output.js";
import { encodeTarHeader, NO_XATTRS, type TarEntry, type UserXattrs } from "./encode-tar-header.js";
import { TYPE } from "./tar-block.js";

const OPEN_FILE = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const OPEN_DIRECTORY = OPEN_FILE | constants.O_DIRECTORY;
/** A file of this size is read at once instead of on a thread: for a small one the way there and back is most of the cost. */
const INLINE_BYTES = 64 * 1024;
/** What st_blocks counts. */
const STAT_BLOCK_BYTES = 512n;

const TYPE_OF_KIND: Readonly<Record<Exclude<FileKind, "socket">, string>> = {
  file: TYPE.file,
  directory: TYPE.directory,
  symlink: TYPE.symlink,
  fifo: TYPE.fifo,
  "character-device": TYPE.characterDevice,
  "block-device": TYPE.blockDevice,
};

/** A file whose content is still to be read; nothing of it is in the output yet. Who takes it closes the descriptor. */
export interface OpenedFile {
  readonly relativePath: string;
  readonly fd: number;
  readonly stats: FileStats;
  readonly xattrs: UserXattrs;
}

/** A directory that can be put into the archive when the walk is elsewhere. */
export interface DescribedDirectory {
  readonly relativePath: string;
  readonly stats: FileStats;
  readonly xattrs: UserXattrs;
}

/** Puts entries into the output, as far as that needs no waiting. */
export class EntryPacker {
  readonly #output: ArchiveOutput;
  readonly #users: UserDatabase;
  readonly #path: string;
  readonly #unreadable: WalkOptions;
  /** First names of files that have more, by device and inode, and how many are still to come. */
  readonly #linked = new Map<string, { path: string; left: bigint }>();
  readonly #userNames = new Map<number, string>();
  readonly #groupNames = new Map<number, string>();
  entries = 0n;

  /** `path` is that of the beginning, for messages. */
  constructor(output: ArchiveOutput, users: UserDatabase, path: string, unreadable: WalkOptions) {
    this.#output = output;
    this.#users = users;
    this.#path = path;
    this.#unreadable = unreadable;
  }

  /** To be called with the rights of the acting user. Returns a file that is too large, or has holes. */
  pack(entry: WalkedEntry): OpenedFile | undefined {
    const { relativePath, name, directoryFd, stats } = entry;
    const kind = kindOf(stats);
    if (kind === "socket") return undefined;
    if (kind === "directory") {
      this.packDirectory(describeDirectory(entry));
    } else if (!this.#putLink(relativePath, stats)) {
      if (kind === "file") return this.#packFile(relativePath, directoryFd, name);
      const linkName = kind === "symlink" ? passingOver(relativePath, this.#unreadable, () => readLinkIn(directoryFd, name)) : "";
      if (linkName !== undefined) this.#put(relativePath, stats, { linkName });
    }
    return undefined;
  }

  packDirectory({ relativePath, stats, xattrs }: DescribedDirectory): void {
    this.#put(relativePath, stats, { xattrs });
  }

  /** A file that was opened; its descriptor is closed unless it is returned. */
  packOpened(relativePath: string, fd: number, stats: BigIntStats): OpenedFile | undefined {
    let left: OpenedFile | undefined;
    try {
      const xattrs = readXattrs(fd, "user.");
      const size = Number(stats.size);
      if (size > INLINE_BYTES || stats.blocks * STAT_BLOCK_BYTES < stats.size) {
        left = { relativePath, fd, stats, xattrs };
        return left;
      }
      this.putHeader({ relativePath, fd, stats, xattrs }, size);
      const filled = this.#output.fillWith(size, (buffer) => readWhole(fd, buffer));
      if (filled < size) throw this.shrank(relativePath, filled, size);
      this.#output.padAfter(size);
      return undefined;
    } finally {
      if (left === undefined) closeSync(fd);
    }
  }

  /** `sparseSize`: where its content is that of a sparse file, its size with the holes. */
  putHeader({ relativePath, stats, xattrs }: OpenedFile, storedBytes: number, sparseSize?: number): void {
    this.#put(relativePath, stats, { xattrs, storedBytes, ...(sparseSize === undefined ? {} : { sparseSize }) });
    if (stats.nlink > 1n) this.#linked.set(identityOf(stats), { path: relativePath, left: stats.nlink - 1n });
  }

  shrank(relativePath: string, got: number, expected: number): PicodError {
    const path = posix.join(this.#path, relativePath);
    const message = `file shrank while it was archived: ${path}: it ended at byte ${got} instead of ${expected}`;
    return new PicodError("FILE_SHRANK", message, { path });
  }

  #packFile(relativePath: string, directoryFd: number, name: string): OpenedFile | undefined {
    const fd = passingOver(relativePath, this.#unreadable, () => openIn(directoryFd, name, OPEN_FILE));
    if (fd === undefined) return undefined;
    const stats = fstatSync(fd, { bigint: true });
    if (stats.isFile()) return this.packOpened(relativePath, fd, stats);
    // It became something else after it was described.
    closeSync(fd);
    return undefined;
  }

  /** False when this is the first name of what it belongs to. */
  #putLink(relativePath: string, stats: FileStats): boolean {
    if (stats.nlink < 2n) return false;
    const identity = identityOf(stats);
    const first = this.#linked.get(identity);
    if (first === undefined) {
      // That of a file follows when it could be opened.
      if (kindOf(stats) !== "file") this.#linked.set(identity, { path: relativePath, left: stats.nlink - 1n });
      return false;
    }
    first.left--;
    if (first.left === 0n) this.#linked.delete(identity);
    this.#put(relativePath, stats, { type: TYPE.hardLink, linkName: first.path });
    return true;
  }

  #put(relativePath: string, stats: FileStats, more: Partial<TarEntry>): void {
    const kind = kindOf(stats) as keyof typeof TYPE_OF_KIND;
    const [uid, gid] = [Number(stats.uid), Number(stats.gid)];
    const device = kind.endsWith("-device") ? { device: deviceOf(stats.rdev) } : {};
    const header = encodeTarHeader({
      path: isDirectory(stats) ? `${relativePath}/` : relativePath,
      type: TYPE_OF_KIND[kind],
      mode: Number(stats.mode) & 0o7777,
      uid,
      gid,
      userName: cached(this.#userNames, uid, () => this.#users.userName(uid)),
      groupName: cached(this.#groupNames, gid, () => this.#users.groupName(gid)),
      modifiedTimeNs: stats.mtimeNs,
      storedBytes: 0,
      linkName: "",
      xattrs: NO_XATTRS,
      ...device,
      ...more,
    });
    this.#output.append(header);
    this.entries++;
  }
}

function identityOf({ dev, ino }: FileStats): string {
  return `${dev}:${ino}`;
}

/** Without extended attributes when it cannot be read, about which the walk will speak. */
export function describeDirectory({ relativePath, directoryFd, name, stats }: WalkedEntry): DescribedDirectory {
  let fd: number;
  try {
    fd = openIn(directoryFd, name, OPEN_DIRECTORY);
  } catch {
    return { relativePath, stats, xattrs: NO_XATTRS };
  }
  try {
    return { relativePath, stats, xattrs: readXattrs(fd, "user.") };
  } finally {
    closeSync(fd);
  }
}

function readWhole(fd: number, buffer: Buffer): number {
  let done = 0;
  while (done < buffer.length) {
    const bytes = readSync(fd, buffer, done, buffer.length - done, done);
    if (bytes === 0) break;
    done += bytes;
  }
  return done;
}

/** As gnu_dev_major(3) and gnu_dev_minor(3). */
function deviceOf(device: bigint): { major: number; minor: number } {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return { major: Number(major), minor: Number(minor) };
}

/** Names of owners; that of a number without one is empty. */
function cached(names: Map<number, string>, id: number, look: () => string): string {
  let name = names.get(id);
  if (name === undefined) {
    name = look();
    if (name === String(id)) name = "";
    names.set(id, name);
  }
  return name;
}
