import { PicodError } from "../../errors/picod-error.js";
import { type Access, isSameAccess } from "../access.js";
import { type CommitOptions, type CommitResult, commitUpload } from "../commit-upload.js";
import { CommittedUploads } from "./committed-uploads.js";
import { PendingUpload, type UploadInfo, uploadNotFound } from "./pending-upload.js";
import { UploadPart, type UploadPartOptions } from "./upload-part.js";

export interface UploadLimits {
  /** So long an upload is pending after something was added to it, and a commit is answered again. */
  readonly expireMs: number;
  /** Pending uploads, each with a descriptor, and commits that are remembered. */
  readonly maxUploads: number;
}

export interface NewPart extends UploadPartOptions {
  readonly id: string;
  readonly path: string;
  readonly mode: number | undefined;
}

/** Files that arrive in parts: what was begun and not yet committed. Only who has begun one sees it. */
export class PendingUploads {
  readonly #limits: UploadLimits;
  /** Oldest first. */
  readonly #uploads = new Map<string, PendingUpload>();
  readonly #committed: CommittedUploads;

  constructor(limits: UploadLimits) {
    this.#limits = limits;
    this.#committed = new CommittedUploads(limits.expireMs, limits.maxUploads);
  }

  /**
   * Begins a part, and with the first one of its id the upload.
   * @throws UPLOAD_CONFLICT, UPLOAD_BUSY, UPLOAD_LIMIT_REACHED, those of PendingUpload and UploadPart.
   */
  addPart(access: Access, options: NewPart): UploadPart {
    const known = this.#uploads.get(options.id);
    if (known !== undefined) assertSameUpload(known, access, options);
    const upload = known ?? this.#begin(access, options);
    upload.parts++;
    clearTimeout(upload.expiry);
    let closed = false;
    const onClose = () => {
      if (closed) return;
      closed = true;
      upload.parts--;
      this.#used(upload);
    };
    try {
      return new UploadPart(upload, options, onClose);
    } catch (error) {
      onClose();
      throw error;
    }
  }

  /** @throws UPLOAD_NOT_FOUND. */
  get(access: Access, id: string): UploadInfo {
    return this.#describe(this.#find(access, id));
  }

  /** The upload that a part was added to. */
  describe({ upload }: UploadPart): UploadInfo {
    return this.#describe(upload);
  }

  list(access: Access): UploadInfo[] {
    const own = [...this.#uploads.values()].filter((upload) => isSameAccess(upload.access, access));
    return own.map((upload) => this.#describe(upload));
  }

  /** Drops an upload; one that is being committed when that has failed. @throws UPLOAD_NOT_FOUND. */
  async abort(access: Access, id: string): Promise<void> {
    for (let upload = this.#find(access, id); ; upload = this.#find(access, id)) {
      if (upload.committing === undefined) {
        this.#drop(upload);
        return;
      }
      await upload.committing;
    }
  }

  /**
   * Makes a file of an upload. Repeated while it is under way it waits, and then has the same answer.
   * @throws UPLOAD_NOT_FOUND, UPLOAD_BUSY, UPLOAD_INCOMPLETE, SIZE_MISMATCH, UPLOAD_CONFLICT, those of commitUpload.
   */
  async commit(access: Access, id: string, options: CommitOptions, abortSignal: AbortSignal): Promise<CommitResult> {
    for (;;) {
      const upload = this.#uploads.get(id);
      if (upload === undefined) return this.#committed.again(access, id, options);
      if (!isSameAccess(upload.access, access)) throw uploadNotFound(id);
      if (upload.committing === undefined) return this.#commit(access, upload, options, abortSignal);
      await upload.committing;
    }
  }

  close(): void {
    for (const upload of [...this.#uploads.values()]) this.#drop(upload);
    this.#committed.close();
  }

  async #commit(access: Access, upload: PendingUpload, options: CommitOptions, abortSignal: AbortSignal): Promise<CommitResult> {
    upload.assertWhole(Number(options.size));
    clearTimeout(upload.expiry);
    const ending = new AbortController();
    const end = () => ending.abort(abortSignal.aborted ? abortSignal.reason : upload.gone.reason);
    for (const signal of [abortSignal, upload.gone]) signal.addEventListener("abort", end);
    if (abortSignal.aborted) end();
    const committed = commitUpload(access, upload, options, () => upload.done(), ending.signal);
    upload.committing = committed.then(
      () => undefined,
      () => undefined,
    );
    try {
      const result = await committed;
      this.#committed.add(upload, options, result);
      return result;
    } finally {
      for (const signal of [abortSignal, upload.gone]) signal.removeEventListener("abort", end);
      upload.committing = undefined;
      if (upload.gone.aborted) this.#uploads.delete(upload.id);
      this.#used(upload);
    }
  }

  #begin(access: Access, { id, path, mode }: NewPart): PendingUpload {
    const { maxUploads } = this.#limits;
    if (this.#uploads.size >= maxUploads) {
      const message = `cannot begin upload ${id}: ${maxUploads} are pending; commit or abort some`;
      throw new PicodError("UPLOAD_LIMIT_REACHED", message, { upload_id: id, path });
    }
    const upload = new PendingUpload(id, access, path, mode);
    this.#committed.forget(id);
    this.#uploads.set(id, upload);
    return upload;
  }

  /** After each use: it waits for the next one, unless nothing of it has ever arrived. */
  #used(upload: PendingUpload): void {
    if (upload.gone.aborted) {
      upload.release();
    } else if (!upload.isUsed && !upload.hasPart && upload.received.count === 0) {
      this.#drop(upload);
    } else if (!upload.isUsed) {
      upload.usedTimeMs = Date.now();
      clearTimeout(upload.expiry);
      upload.expiry = setTimeout(() => this.#drop(upload), this.#limits.expireMs).unref();
    }
  }

  #drop(upload: PendingUpload): void {
    this.#uploads.delete(upload.id);
    upload.drop();
  }

  #find(access: Access, id: string): PendingUpload {
    const upload = this.#uploads.get(id);
    if (upload === undefined || !isSameAccess(upload.access, access)) throw uploadNotFound(id);
    return upload;
  }

  #describe(upload: PendingUpload): UploadInfo {
    const { id, path, createdTimeMs, usedTimeMs } = upload;
    const expireTimeMs = (upload.isUsed ? Date.now() : usedTimeMs) + this.#limits.expireMs;
    return { id, path, received: [...upload.received], createdTimeMs, expireTimeMs };
  }
}

/** The first part has said what the upload is; no other may say otherwise. */
function assertSameUpload(upload: PendingUpload, access: Access, { id, path, mode }: NewPart): void {
  const differs = (field: string) =>
    new PicodError("UPLOAD_CONFLICT", `upload ${id} was begun otherwise: ${field} differs`, { upload_id: id, field });
  if (!isSameAccess(upload.access, access)) throw differs("user");
  if (upload.path !== path) throw differs("path");
  if (upload.mode !== mode) throw differs("mode");
  if (upload.committing !== undefined)
    throw new PicodError("UPLOAD_BUSY", `cannot add to upload ${id} of ${path}: it is being committed`, { upload_id: id, path });
}
