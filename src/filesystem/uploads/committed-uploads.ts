import { PicodError } from "../../errors/picod-error.js";
import { errnoName } from "../../os/system-error.js";
import { type Access, isSameAccess } from "../access.js";
import type { CommitOptions, CommitResult } from "../commit-upload.js";
import { stat } from "../stat.js";
import { type PendingUpload, uploadNotFound } from "./pending-upload.js";

interface CommittedUpload {
  readonly access: Access;
  readonly path: string;
  readonly size: bigint;
  readonly sha256: string | undefined;
  readonly etag: string;
  readonly expiry: NodeJS.Timeout;
}

/** Commits that have been done, for callers who lost the answer. */
export class CommittedUploads {
  readonly #retainMs: number;
  readonly #maxRecords: number;
  /** Oldest first. */
  readonly #records = new Map<string, CommittedUpload>();

  constructor(retainMs: number, maxRecords: number) {
    this.#retainMs = retainMs;
    this.#maxRecords = maxRecords;
  }

  add({ id, access, path }: PendingUpload, { size, sha256 }: CommitOptions, { entry }: CommitResult): void {
    this.forget(id);
    const expiry = setTimeout(() => this.#records.delete(id), this.#retainMs).unref();
    this.#records.set(id, { access, path, size, sha256, etag: entry.etag, expiry });
    const [oldest] = this.#records.keys();
    if (this.#records.size > this.#maxRecords && oldest !== undefined) this.forget(oldest);
  }

  /** Answers once more. @throws UPLOAD_NOT_FOUND, also when the file has changed; UPLOAD_CONFLICT when another content is meant. */
  again(access: Access, id: string, { size, sha256 }: CommitOptions): CommitResult {
    const record = this.#records.get(id);
    if (record === undefined || !isSameAccess(record.access, access)) throw uploadNotFound(id);
    const field = record.size !== size ? "size" : record.sha256 !== sha256 ? "sha256" : undefined;
    if (field !== undefined)
      throw new PicodError("UPLOAD_CONFLICT", `upload ${id} was committed otherwise: ${field} differs`, { upload_id: id, field });
    const entry = statOrUndefined(access, record.path);
    if (entry?.etag !== record.etag) throw uploadNotFound(id);
    return { entry, sha256: sha256 ?? "" };
  }

  forget(id: string): void {
    clearTimeout(this.#records.get(id)?.expiry);
    this.#records.delete(id);
  }

  close(): void {
    for (const id of [...this.#records.keys()]) this.forget(id);
  }
}

function statOrUndefined(access: Access, path: string) {
  try {
    return stat(access, path, true);
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return undefined;
  }
}
