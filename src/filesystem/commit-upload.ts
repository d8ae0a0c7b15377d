import { close, closeSync, fstatSync, ftruncate } from "node:fs";
import { promisify } from "node:util";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { withPath } from "../os/system-error.js";
import { discard, type TemporaryFile } from "../os/temporary-file.js";
import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { hashFile } from "./uploads/hash-file.js";
import type { PendingUpload } from "./uploads/pending-upload.js";
import { removeMadeDirectories } from "./writing/make-parents.js";
import { makeVisible } from "./writing/make-visible.js";
import { copyOver } from "./writing/write-all.js";
import { mayBeReplaced, openDestinationOf, tryTemporary, type WriteDestination } from "./writing/write-destination.js";
import { assertPrecondition, type WritePrecondition } from "./writing/write-precondition.js";
import { openWriteTarget, type WriteTarget } from "./writing/write-target.js";

export interface CommitOptions {
  /** Bytes of the whole file. */
  readonly size: bigint;
  /** Lower-case hexadecimal digest announced. */
  readonly sha256?: string | undefined;
  /** fsync the file and the names that lead to it. */
  readonly sync?: boolean;
  readonly precondition?: WritePrecondition | undefined;
}

export interface CommitResult {
  readonly entry: EntryInfo;
  /** Empty unless one was announced. */
  readonly sha256: string;
}

/**
 * Makes a file of a whole upload that nobody adds to. What has the name is looked up anew: hours may have passed since the first part.
 * @throws CHECKSUM_MISMATCH, those of makeVisible, the signal's reason before it is visible; then the upload is as it was.
 */
export async function commitUpload(
  access: Access,
  upload: PendingUpload,
  options: CommitOptions,
  onVisible: () => void,
  abortSignal: AbortSignal,
): Promise<CommitResult> {
  const { path, mode, storage } = upload;
  const bytes = Number(options.size);
  try {
    const sha256 = await verified(upload, bytes, options.sha256, abortSignal);
    abortSignal.throwIfAborted();
    // What a part with a wrong checksum has left beyond the end.
    await promisify(ftruncate)(storage.fd, bytes);
    using place = new CommitPlace(access, upload, options.precondition);
    const destination = await place.open(bytes);
    const { precondition, sync = false } = options;
    const target = { ...place.target, madeDirectories: [...storage.madeDirectories, ...place.target.madeDirectories] };
    const visible = () => {
      place.isTaken = true;
      onVisible();
    };
    const entry = await makeVisible({ access, path, target, destination, bytes, mode, precondition, sync, onVisible: visible });
    return { entry, sha256 };
  } catch (error) {
    throw withPath(error, path);
  }
}

async function verified(upload: PendingUpload, bytes: number, expected: string | undefined, abortSignal: AbortSignal) {
  if (expected === undefined) return "";
  const sha256 = upload.hash.digest(bytes) ?? (await hashFile(upload.storage.fd, bytes, abortSignal));
  if (sha256 === expected) return sha256;
  const { id, path } = upload;
  const message = `cannot commit upload ${id} of ${path}: the content has sha256 ${sha256}`;
  throw new PicodError("CHECKSUM_MISMATCH", message, { upload_id: id, path });
}

/** The place that the content is to take, and what is open for that; gives everything back that was not needed. */
class CommitPlace implements Disposable {
  readonly target: WriteTarget;
  isTaken = false;
  readonly #access: Access;
  readonly #upload: PendingUpload;
  #destination: WriteDestination | undefined;
  /** What takes the name where the upload's own file cannot. */
  #moved: TemporaryFile | undefined;

  /** @throws PRECONDITION_FAILED, ALREADY_EXISTS, errno. */
  constructor(access: Access, upload: PendingUpload, precondition: WritePrecondition | undefined) {
    this.#access = access;
    this.#upload = upload;
    this.target = withFileRightsOf(access, () => openWriteTarget(access, upload.path));
    try {
      assertPrecondition(upload.path, this.target.existing, precondition);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  async open(bytes: number): Promise<WriteDestination> {
    const { storage, path } = this.#upload;
    let temporary = this.#ownFile();
    if (temporary === undefined && mayBeReplaced(this.target.existing)) temporary = await this.#moveHere(bytes);
    const fd = temporary?.fd ?? storage.fd;
    const owner = fd === storage.fd ? storage.owner : fstatSync(fd, { bigint: true });
    this.#destination = withFileRightsOf(this.#access, () => openDestinationOf(path, this.target, fd, owner, temporary));
    return this.#destination;
  }

  [Symbol.dispose](): void {
    const { storage } = this.#upload;
    const temporary = this.#destination?.temporary;
    withFileRightsOf(this.#access, () => {
      if (temporary?.name !== undefined && temporary !== storage.hidden) {
        discard(temporary);
        storage.linkable = false;
      }
      if (this.#moved !== undefined) discard(this.#moved);
      closeSync(this.target.directoryFd);
      if (!this.isTaken) removeMadeDirectories(this.#access, this.target.madeDirectories);
    });
    for (const fd of [this.#destination?.existingFd, this.#moved?.fd]) if (fd !== undefined) close(fd, () => undefined);
  }

  /** The upload's file, unless it had a name already, or the target's directory is by now another than that it was made for. */
  #ownFile(): TemporaryFile | undefined {
    const { fd, hidden, directory, linkable } = this.#upload.storage;
    const { directoryFd } = this.target;
    const { dev, ino } = fstatSync(directoryFd, { bigint: true });
    if (!linkable || dev !== directory.dev) return undefined;
    if (hidden === undefined) return { fd, directoryFd, name: undefined };
    return ino === directory.ino ? hidden : undefined;
  }

  /** Undefined where the user may write the existing file but not create others beside it. */
  async #moveHere(bytes: number): Promise<TemporaryFile | undefined> {
    const { directoryFd, existing } = this.target;
    this.#moved = withFileRightsOf(this.#access, () => tryTemporary(directoryFd, existing !== undefined));
    if (this.#moved !== undefined) await copyOver(this.#upload.storage.fd, this.#moved.fd, bytes);
    return this.#moved;
  }
}
