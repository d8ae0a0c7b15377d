import { createHash } from "node:crypto";
import type { Access } from "../../src/filesystem/access.js";
import type { CommitOptions, CommitResult } from "../../src/filesystem/commit-upload.js";
import type { NewPart, PendingUploads } from "../../src/filesystem/uploads/pending-uploads.js";
import type { UploadPartResult } from "../../src/filesystem/uploads/upload-part.js";

export const digest = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

/** Adds one part, in one chunk. */
export async function addPart(
  uploads: PendingUploads,
  access: Access,
  path: string,
  offset: number,
  content: string | Uint8Array,
  options: Partial<NewPart> = {},
): Promise<UploadPartResult> {
  const part = uploads.addPart(access, { id: "up", path, mode: undefined, offset: BigInt(offset), ...options });
  try {
    await part.write(typeof content === "string" ? Buffer.from(content) : content);
    return part.finish();
  } finally {
    part.close();
  }
}

/** Commits the upload "up". */
export function commit(
  uploads: PendingUploads,
  access: Access,
  size: number,
  options: Partial<CommitOptions> = {},
  id = "up",
): Promise<CommitResult> {
  return uploads.commit(access, id, { size: BigInt(size), ...options }, new AbortController().signal);
}
