import { PicodError } from "../../errors/picod-error.js";
import { errnoName } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { type ByteRange, ByteRanges } from "./byte-ranges.js";
import { InOrderHash } from "./in-order-hash.js";
import { closeUploadStorage, openUploadStorage, removeUploadNames, type UploadStorage } from "./upload-storage.js";

/** So many missing ranges a message names. */
const NAMED_RANGES = 3;

/** What a pending upload is, for those who ask. */
export interface UploadInfo {
  readonly id: string;
  readonly path: string;
  readonly received: readonly ByteRange[];
  /** Milliseconds since 1970. */
  readonly createdTimeMs: number;
  readonly expireTimeMs: number;
}

/** A file that is being collected. It lives while it is used (a part arrives, it is being committed), and then until it is dropped. */
export class PendingUpload {
  readonly id: string;
  readonly access: Access;
  readonly path: string;
  /** Permission bits, as the first part has asked for them. */
  readonly mode: number | undefined;
  readonly storage: UploadStorage;
  readonly received = new ByteRanges();
  readonly hash = new InOrderHash();
  readonly createdTimeMs = Date.now();
  /** Parts that are arriving. */
  parts = 0;
  /** A part has ended well, be it an empty one. */
  hasPart = false;
  /** Settles, and never rejects, when the commit that is under way has ended. */
  committing: Promise<void> | undefined;
  expiry: NodeJS.Timeout | undefined;
  usedTimeMs = Date.now();
  readonly #gone = new AbortController();

  /** @throws NOT_A_REGULAR_FILE, errno of what the user could not write. */
  constructor(id: string, access: Access, path: string, mode: number | undefined) {
    this.id = id;
    this.access = access;
    this.path = path;
    this.mode = mode;
    this.storage = openUploadStorage(access, path);
  }

  /** Aborts with UPLOAD_NOT_FOUND when it is dropped. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isUsed(): boolean {
    return this.parts > 0 || this.committing !== undefined;
  }

  /** Ends what uses it and removes what it has made; its content is freed when the last use has ended. */
  drop(): void {
    clearTimeout(this.expiry);
    this.#gone.abort(uploadNotFound(this.id));
    try {
      removeUploadNames(this.access, this.storage);
    } catch (error) {
      // Who has taken away the right to remove them, or the file system, keeps empty directories.
      if (errnoName(error) === undefined) throw error;
    }
    this.release();
  }

  /** To be called after each use. */
  release(): void {
    if (this.gone.aborted && !this.isUsed) closeUploadStorage(this.storage);
  }

  /** It has become a file: what was made for it stays. */
  done(): void {
    clearTimeout(this.expiry);
    this.#gone.abort(uploadNotFound(this.id));
  }

  /** @throws UPLOAD_BUSY, SIZE_MISMATCH, UPLOAD_INCOMPLETE. */
  assertWhole(size: number): void {
    const { id, path } = this;
    const refused = (reason: "UPLOAD_BUSY" | "SIZE_MISMATCH" | "UPLOAD_INCOMPLETE", why: string) =>
      new PicodError(reason, `cannot commit upload ${id} of ${path}: ${why}`, { upload_id: id, path });
    if (this.parts > 0) throw refused("UPLOAD_BUSY", `parts are still arriving: ${this.parts}`);
    const { end } = this.received;
    if (end > size) throw refused("SIZE_MISMATCH", `bytes have arrived up to ${end}, more than its size of ${size}`);
    const missing = this.received.missing(size);
    if (missing.length === 0) return;
    const named = missing.slice(0, NAMED_RANGES).map((range) => `${range.start} to ${range.end}`);
    const more = missing.length - named.length;
    throw refused("UPLOAD_INCOMPLETE", `missing are bytes ${named.join(", ")}${more > 0 ? ` and ${more} more ranges` : ""}`);
  }
}

export function uploadNotFound(id: string): PicodError {
  return new PicodError("UPLOAD_NOT_FOUND", `no such upload: ${id}`, { upload_id: id });
}
