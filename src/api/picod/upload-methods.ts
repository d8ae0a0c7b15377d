import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { callerOf } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import type { UploadInfo } from "../../filesystem/uploads/pending-upload.js";
import type { NewPart } from "../../filesystem/uploads/pending-uploads.js";
import {
  Durability,
  type FilesystemService,
  type PendingUploadSchema,
  type WriteFileMetadata,
} from "../../gen/picod/v1/filesystem_pb.js";
import { resolveAccess } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { toEntryInfo } from "./entry-info.js";
import { toMode, toPrecondition, toSha256, toSync } from "./write-options.js";

/** The part of picod.v1.FilesystemService that is about pending uploads; WriteFile adds to them. */
export function createUploadMethods(
  sandbox: Sandbox,
): Pick<ServiceImpl<typeof FilesystemService>, "commitUpload" | "getUpload" | "listUploads" | "abortUpload"> {
  const { uploads } = sandbox;
  return {
    async commitUpload(request, context) {
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      const options = {
        size: toSize(request.size),
        sha256: toSha256(request.sha256),
        sync: toSync(request.durability),
        precondition: toPrecondition(request.precondition),
      };
      const { entry, sha256 } = await uploads.commit(access, toUploadId(request.uploadId), options, context.signal);
      return { entry: toEntryInfo(entry), sha256 };
    },

    getUpload(request, context) {
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      return { upload: toPendingUpload(uploads.get(access, toUploadId(request.uploadId))) };
    },

    listUploads(request, context) {
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      return { uploads: uploads.list(access).map(toPendingUpload) };
    },

    async abortUpload(request, context) {
      const access = resolveAccess(sandbox, request.user, callerOf(context));
      await uploads.abort(access, toUploadId(request.uploadId));
      return {};
    },
  };
}

export function toPendingUpload(upload: UploadInfo): MessageInitShape<typeof PendingUploadSchema> {
  return {
    uploadId: upload.id,
    path: upload.path,
    received: upload.received.map(({ start, end }) => ({ start: BigInt(start), end: BigInt(end) })),
    createdTime: timestampFromMs(upload.createdTimeMs),
    expireTime: timestampFromMs(upload.expireTimeMs),
  };
}

/** @throws INVALID_ARGUMENT. */
export function toNewPart(metadata: WriteFileMetadata, path: string): NewPart {
  const { uploadId, mode, offset, size, sha256, durability, precondition } = metadata;
  if (durability !== Durability.UNSPECIFIED || precondition !== undefined) {
    const field = precondition === undefined ? "durability" : "precondition";
    throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: a part has none, CommitUpload takes it`);
  }
  return { id: toUploadId(uploadId), path, mode: toMode(mode), offset, size, sha256: toSha256(sha256) };
}

function toUploadId(id: string): string {
  if (/^[\w.:-]{1,128}$/.test(id)) return id;
  throw new PicodError("INVALID_ARGUMENT", "invalid upload_id: it is 1 to 128 of the characters A-Z a-z 0-9 . _ : -");
}

function toSize(size: bigint): bigint {
  if (size <= BigInt(Number.MAX_SAFE_INTEGER)) return size;
  throw new PicodError("INVALID_ARGUMENT", `invalid size: ${size}: no file is so long`);
}
