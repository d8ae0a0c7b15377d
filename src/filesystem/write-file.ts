import { createHash } from "node:crypto";
import {
  type BigIntStats,
  close,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsync,
  ftruncate,
  read,
  write,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { openIn } from "../os/root.js";
import { errnoName, withPath } from "../os/system-error.js";
import { discard, publish } from "../os/temporary-file.js";
import type { Access } from "./access.js";
import { describeEntry, type EntryInfo, etagOf } from "./entry-info.js";
import { removeMadeDirectories } from "./make-parents.js";
import { openDestination, type WriteDestination } from "./write-destination.js";
import { lookUp, openWriteTarget, type WriteTarget } from "./write-target.js";

const NEW_FILE_MODE = 0o644;
const COPY_BYTES = 256 * 1024;
/** So much of a file is written at once instead of on a thread: for a small file the way there and back is most of the cost. */
const INLINE_BYTES = 64 * 1024;
/** Renaming is refused over a mount point, and over another's file in a sticky directory. */
const NOT_RENAMABLE = ["EBUSY", "EPERM"];

export type WritePrecondition = { readonly kind: "must-not-exist" } | { readonly kind: "etag"; readonly etag: string };

export interface WriteFileOptions {
  /** Permission bits; those of the replaced file by default, else 0644. */
  readonly mode?: number | undefined;
  /** Patches the file in place from this byte on. */
  readonly offset?: bigint | undefined;
  /** Bytes announced. */
  readonly size?: bigint | undefined;
  /** Lower-case hexadecimal digest announced. */
  readonly sha256?: string | undefined;
  /** fsync the file and its directory. */
  readonly sync?: boolean;
  readonly precondition?: WritePrecondition | undefined;
}

export interface WriteFileResult {
  readonly entry: EntryInfo;
  readonly bytesWritten: bigint;
  /** Empty unless one was announced. */
  readonly sha256: string;
}

/**
 * One upload: `write` any number of chunks, one after the other, then `commit`; `close` in any case. Until the commit, and after
 * a close without one, the previous content is what others see.
 */
export class FileWriter {
  readonly #access: Access;
  readonly #path: string;
  readonly #options: WriteFileOptions;
  readonly #target: WriteTarget;
  readonly #destination: WriteDestination;
  readonly #hash;
  readonly #start: number;
  #bytes = 0;
  #committed = false;

  /** @throws NOT_A_REGULAR_FILE, PRECONDITION_FAILED, ALREADY_EXISTS, NO_SPACE, OFFSET_BEYOND_END, errno of open(2). */
  constructor(access: Access, path: string, options: WriteFileOptions) {
    this.#access = access;
    this.#path = path;
    this.#options = options;
    this.#start = Number(options.offset ?? 0n);
    this.#hash = options.sha256 === undefined ? undefined : createHash("sha256");
    [this.#target, this.#destination] = withFileRightsOf(access.user, () => open(access, path, options));
  }

  /** Takes one chunk; it may be reused when the promise has settled. @throws SIZE_MISMATCH, errno of write(2). */
  async write(chunk: Uint8Array): Promise<void> {
    const { size } = this.#options;
    if (size !== undefined && BigInt(this.#bytes + chunk.length) > size) {
      throw this.#mismatch("SIZE_MISMATCH", `more than the announced ${size} bytes arrived`);
    }
    this.#hash?.update(chunk);
    try {
      const position = this.#start + this.#bytes;
      if (this.#bytes + chunk.length <= INLINE_BYTES) writeAllNow(this.#destination.fd, chunk, position);
      else await writeAll(this.#destination.fd, chunk, position);
    } catch (error) {
      throw withPath(error, this.#path);
    }
    this.#bytes += chunk.length;
  }

  /** Makes the content visible. @throws SIZE_MISMATCH, CHECKSUM_MISMATCH, PRECONDITION_FAILED, ALREADY_EXISTS, errno. */
  async commit(): Promise<WriteFileResult> {
    const { size, sync } = this.#options;
    if (size !== undefined && BigInt(this.#bytes) !== size) {
      throw this.#mismatch("SIZE_MISMATCH", `${this.#bytes} bytes arrived instead of the announced ${size}`);
    }
    const sha256 = this.#hash?.digest("hex") ?? "";
    if (sha256 !== (this.#options.sha256 ?? "")) throw this.#mismatch("CHECKSUM_MISMATCH", `the content has sha256 ${sha256}`);
    try {
      if (sync) await promisify(fsync)(this.#destination.fd);
      const fd = await this.#makeVisible();
      this.#committed = true;
      if (sync) await this.#syncNames(fd);
      const entry = describeEntry(this.#path, fstatSync(fd, { bigint: true }), this.#access.users);
      return { entry, bytesWritten: BigInt(this.#bytes), sha256 };
    } catch (error) {
      throw withPath(error, this.#path);
    }
  }

  /** Closes what was opened and, without a commit, removes what was made. */
  close(): void {
    const { temporary, fd, existingFd } = this.#destination;
    withFileRightsOf(this.#access.user, () => {
      if (temporary !== undefined) discard(temporary);
      closeSync(this.#target.directoryFd);
      if (!this.#committed) removeMadeDirectories(this.#access, this.#target.madeDirectories);
    });
    // Freeing the blocks of a large file takes time: not on the event loop.
    for (const open of new Set([fd, existingFd])) if (open !== undefined) close(open, () => undefined);
  }

  /** Returns the descriptor of what is visible now. */
  async #makeVisible(): Promise<number> {
    const { way, fd, existingFd } = this.#destination;
    if (way === "in-place") {
      if (this.#options.mode !== undefined) withFileRightsOf(this.#access.user, () => fchmodSync(fd, this.#options.mode ?? 0));
      return fd;
    }
    if (way === "rename" && withFileRightsOf(this.#access.user, () => this.#rename())) return fd;
    if (existingFd === undefined)
      throw new PicodError("PRECONDITION_FAILED", `cannot replace ${this.#path}: it is in use`, { path: this.#path });
    this.#assertPrecondition();
    await copy(fd, existingFd, this.#bytes);
    if (this.#options.mode !== undefined)
      withFileRightsOf(this.#access.user, () => fchmodSync(existingFd, this.#options.mode ?? 0));
    if (this.#options.sync) await promisify(fsync)(existingFd);
    return existingFd;
  }

  /** False when the name cannot be renamed over. */
  #rename(): boolean {
    const { fd, temporary } = this.#destination;
    const { name, existing } = this.#target;
    if (temporary === undefined) return false;
    fchmodSync(fd, this.#options.mode ?? (existing === undefined ? NEW_FILE_MODE : Number(existing.mode) & 0o7777));
    this.#assertPrecondition();
    try {
      if (existing === undefined) {
        try {
          publish(temporary, name, false);
          return true;
        } catch (error) {
          if (errnoName(error) !== "EEXIST" || this.#options.precondition?.kind === "must-not-exist") throw error;
        }
      }
      publish(temporary, name, true);
      return true;
    } catch (error) {
      if (existing !== undefined && NOT_RENAMABLE.includes(errnoName(error) ?? "")) return false;
      throw error;
    }
  }

  #assertPrecondition(): void {
    const { precondition } = this.#options;
    if (precondition === undefined) return;
    assertPrecondition(this.#path, lookUp(this.#target.directoryFd, this.#target.name)?.stats, precondition);
  }

  async #syncNames(fd: number): Promise<void> {
    if (fd === this.#destination.existingFd) return;
    // The directory was opened for naming only, and such a descriptor cannot be synced.
    const directoryFd = openIn(this.#target.directoryFd, ".", constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await promisify(fsync)(directoryFd);
    } finally {
      closeSync(directoryFd);
    }
  }

  #mismatch(reason: "SIZE_MISMATCH" | "CHECKSUM_MISMATCH", why: string): PicodError {
    return new PicodError(reason, `cannot write ${this.#path}: ${why}`, { path: this.#path });
  }
}

function open(access: Access, path: string, options: WriteFileOptions): [WriteTarget, WriteDestination] {
  let target: WriteTarget | undefined;
  try {
    target = openWriteTarget(access, path);
    if (options.precondition !== undefined) assertPrecondition(path, target.existing, options.precondition);
    return [target, openDestination(path, target, options.offset, options.size)];
  } catch (error) {
    if (target !== undefined) {
      closeSync(target.directoryFd);
      removeMadeDirectories(access, target.madeDirectories);
    }
    throw withPath(error, path);
  }
}

function assertPrecondition(path: string, existing: BigIntStats | undefined, precondition: WritePrecondition): void {
  if (precondition.kind === "must-not-exist") {
    if (existing !== undefined) throw new PicodError("ALREADY_EXISTS", `cannot write ${path}: it exists`, { path });
    return;
  }
  const etag = existing === undefined ? "" : etagOf(existing);
  if (etag === precondition.etag) return;
  const why = existing === undefined ? "it does not exist" : `its etag is ${etag}`;
  throw new PicodError("PRECONDITION_FAILED", `cannot write ${path}: ${why}`, { path, etag });
}

/** Loops because write(2) on a nearly full disk takes a part without an error; the next call has it. */
async function writeAll(fd: number, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) done += await writeOnce(fd, chunk, done, position + done);
}

function writeAllNow(fd: number, chunk: Uint8Array, position: number): void {
  for (let done = 0; done < chunk.length; ) done += writeSync(fd, chunk, done, chunk.length - done, position + done);
}

function writeOnce(fd: number, chunk: Uint8Array, from: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, chunk, from, chunk.length - from, position, (error, written) => (error ? reject(error) : resolve(written)));
  });
}

async function copy(fromFd: number, toFd: number, bytes: number): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(COPY_BYTES);
  for (let position = 0; position < bytes; ) {
    const { bytesRead } = await promisify(read)(fromFd, buffer, 0, buffer.length, position);
    if (bytesRead === 0) break;
    await writeAll(toFd, buffer.subarray(0, bytesRead), position);
    position += bytesRead;
  }
  await promisify(ftruncate)(toFd, bytes);
}
