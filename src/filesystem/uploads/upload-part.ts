import { createHash } from "node:crypto";
import { PicodError } from "../../errors/picod-error.js";
import { withPath } from "../../os/system-error.js";
import { assertFileSize } from "../writing/file-size-limit.js";
import { writeAll, writeAllNow } from "../writing/write-all.js";
import { assertFree } from "../writing/write-destination.js";
import type { PendingUpload } from "./pending-upload.js";

/** As for a whole file: a small part is written at once. */
const INLINE_BYTES = 64 * 1024;
/** A client that sends every other byte would have no end of them. */
const MAX_RANGES = 1_000;

export interface UploadPartOptions {
  /** Where in the file it begins; 0 by default. */
  readonly offset?: bigint | undefined;
  /** Bytes announced. */
  readonly size?: bigint | undefined;
  /** Lower-case hexadecimal digest announced. */
  readonly sha256?: string | undefined;
}

export interface UploadPartResult {
  readonly bytesWritten: bigint;
  /** Empty unless one was announced. */
  readonly sha256: string;
}

/**
 * One part: `write` any number of chunks, one after the other, then `finish`; `close` in any case. What was written counts from then
 * on, except that a part with a wrong checksum counts for nothing.
 */
export class UploadPart {
  readonly upload: PendingUpload;
  readonly #options: UploadPartOptions;
  readonly #hash;
  readonly #start: number;
  readonly #onClose: () => void;
  #bytes = 0;

  /** @throws INVALID_ARGUMENT, NO_SPACE. */
  constructor(upload: PendingUpload, options: UploadPartOptions, onClose: () => void) {
    const { offset = 0n, size = 0n } = options;
    if (offset + size > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new PicodError("INVALID_ARGUMENT", `invalid offset or size: ${offset}, ${size}: no file is so long`);
    }
    this.upload = upload;
    this.#options = options;
    this.#start = Number(offset);
    this.#hash = options.sha256 === undefined ? undefined : createHash("sha256");
    this.#onClose = onClose;
    this.#assertSize(Number(size));
    const replaced = upload.received.countIn(this.#start, this.#start + Number(size));
    assertFree(upload.path, upload.storage.fd, size - BigInt(replaced));
  }

  /** Takes one chunk; it may be reused when the promise has settled. @throws UPLOAD_NOT_FOUND, SIZE_MISMATCH, errno of write(2). */
  async write(chunk: Uint8Array): Promise<void> {
    const { upload } = this;
    const { size } = this.#options;
    upload.gone.throwIfAborted();
    if (size !== undefined && BigInt(this.#bytes + chunk.length) > size) {
      throw this.#refused("SIZE_MISMATCH", `more than the announced ${size} bytes arrived`);
    }
    this.#assertSize(this.#bytes + chunk.length);
    this.#assertFewRanges();
    this.#hash?.update(chunk);
    const position = this.#start + this.#bytes;
    const before = this.#bytes;
    const onWritten = (bytes: number) => {
      upload.received.add(this.#start + this.#bytes, this.#start + this.#bytes + bytes);
      this.#bytes += bytes;
    };
    try {
      if (this.#bytes + chunk.length <= INLINE_BYTES) writeAllNow(upload.storage.fd, chunk, position, onWritten);
      else await writeAll(upload.storage.fd, chunk, position, onWritten);
    } catch (error) {
      throw withPath(error, upload.path);
    } finally {
      upload.hash.update(position, chunk.subarray(0, this.#bytes - before));
    }
    upload.gone.throwIfAborted();
  }

  /** Whether as much has arrived as was announced. */
  get isComplete(): boolean {
    return this.#options.size === BigInt(this.#bytes);
  }

  /** @throws UPLOAD_NOT_FOUND, SIZE_MISMATCH, CHECKSUM_MISMATCH. */
  finish(): UploadPartResult {
    const { size } = this.#options;
    this.upload.gone.throwIfAborted();
    if (size !== undefined && BigInt(this.#bytes) !== size) {
      throw this.#refused("SIZE_MISMATCH", `${this.#bytes} bytes arrived instead of the announced ${size}`);
    }
    const sha256 = this.#hash?.digest("hex") ?? "";
    if (sha256 !== (this.#options.sha256 ?? "")) {
      this.upload.received.remove(this.#start, this.#start + this.#bytes);
      this.upload.hash.drop();
      throw this.#refused("CHECKSUM_MISMATCH", `the part has sha256 ${sha256}`);
    }
    this.upload.hasPart = true;
    return { bytesWritten: BigInt(this.#bytes), sha256 };
  }

  close(): void {
    this.#onClose();
  }

  #assertSize(bytes: number): void {
    assertFileSize(this.upload.access.root.guard, this.upload.path, this.#start + bytes);
  }

  #assertFewRanges(): void {
    if (this.#bytes > 0 || this.upload.received.count < MAX_RANGES) return;
    if (this.upload.received.countIn(this.#start - 1, this.#start + 1) > 0) return;
    throw this.#refused("UPLOAD_LIMIT_REACHED", `it has ${MAX_RANGES} separate ranges; fill the gaps between them`);
  }

  #refused(reason: "SIZE_MISMATCH" | "CHECKSUM_MISMATCH" | "UPLOAD_LIMIT_REACHED", why: string): PicodError {
    const { id, path } = this.upload;
    return new PicodError(reason, `cannot write ${path}: ${why}`, { path, upload_id: id });
  }
}
