import { createHash } from "node:crypto";
import { close, closeSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { withPath } from "../os/system-error.js";
import { discard } from "../os/temporary-file.js";
import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { assertFileSize } from "./writing/file-size-limit.js";
import { removeMadeDirectories } from "./writing/make-parents.js";
import { makeVisible } from "./writing/make-visible.js";
import { writeAll, writeAllNow } from "./writing/write-all.js";
import { openDestination, type WriteDestination } from "./writing/write-destination.js";
import { assertPrecondition, type WritePrecondition } from "./writing/write-precondition.js";
import { openWriteTarget, type WriteTarget } from "./writing/write-target.js";

/** So much of a file is written at once instead of on a thread: for a small file the way there and back is most of the cost. */
const INLINE_BYTES = 64 * 1024;

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
    this.#assertSize(Number(options.size ?? 0n));
    [this.#target, this.#destination] = withFileRightsOf(access, () => open(access, path, options));
  }

  /** Whether a file of that name is there to be replaced. */
  get replaces(): boolean {
    return this.#target.existing !== undefined;
  }

  /** Takes one chunk; it may be reused when the promise has settled. @throws SIZE_MISMATCH, errno of write(2). */
  async write(chunk: Uint8Array): Promise<void> {
    const { size } = this.#options;
    if (size !== undefined && BigInt(this.#bytes + chunk.length) > size) {
      throw this.#mismatch("SIZE_MISMATCH", `more than the announced ${size} bytes arrived`);
    }
    this.#assertSize(this.#bytes + chunk.length);
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

  /** Whether as much has arrived as was announced. */
  get isComplete(): boolean {
    return this.#options.size === BigInt(this.#bytes);
  }

  /** Makes the content visible. @param mode as in the options, when it is known only now. @throws SIZE_MISMATCH, CHECKSUM_MISMATCH, PRECONDITION_FAILED, ALREADY_EXISTS, errno. */
  async commit(mode = this.#options.mode): Promise<WriteFileResult> {
    const { size, sync } = this.#options;
    if (size !== undefined && BigInt(this.#bytes) !== size) {
      throw this.#mismatch("SIZE_MISMATCH", `${this.#bytes} bytes arrived instead of the announced ${size}`);
    }
    const sha256 = this.#hash?.digest("hex") ?? "";
    if (sha256 !== (this.#options.sha256 ?? "")) throw this.#mismatch("CHECKSUM_MISMATCH", `the content has sha256 ${sha256}`);
    const { precondition } = this.#options;
    const entry = await makeVisible({
      access: this.#access,
      path: this.#path,
      target: this.#target,
      destination: this.#destination,
      bytes: this.#bytes,
      mode,
      precondition,
      sync: sync ?? false,
      onVisible: () => {
        this.#committed = true;
      },
    });
    return { entry, bytesWritten: BigInt(this.#bytes), sha256 };
  }

  /** Closes what was opened and, without a commit, removes what was made. */
  close(): void {
    const { way, temporary, fd, existingFd } = this.#destination;
    withFileRightsOf(this.#access, () => {
      if (temporary !== undefined) discard(temporary);
      closeSync(this.#target.directoryFd);
      if (!this.#committed) removeMadeDirectories(this.#access, this.#target.madeDirectories);
    });
    // Freeing the blocks of what nobody has any more takes time, and so may flushing: not on the event loop.
    const isFreed = !this.#committed || way !== "rename";
    if (isFreed || this.#bytes > INLINE_BYTES) close(fd, () => undefined);
    else closeSync(fd);
    if (existingFd !== undefined && existingFd !== fd) close(existingFd, () => undefined);
  }

  #assertSize(bytes: number): void {
    assertFileSize(this.#access.root.guard, this.#path, this.#start + bytes);
  }

  #mismatch(reason: "SIZE_MISMATCH" | "CHECKSUM_MISMATCH", why: string): PicodError {
    return new PicodError(reason, `cannot write ${this.#path}: ${why}`, { path: this.#path });
  }
}

function open(access: Access, path: string, options: WriteFileOptions): [WriteTarget, WriteDestination] {
  let target: WriteTarget | undefined;
  try {
    target = openWriteTarget(access, path);
    assertPrecondition(path, target.existing, options.precondition);
    return [target, openDestination(path, target, options.offset, options.size)];
  } catch (error) {
    if (target !== undefined) {
      closeSync(target.directoryFd);
      removeMadeDirectories(access, target.madeDirectories);
    }
    throw withPath(error, path);
  }
}
