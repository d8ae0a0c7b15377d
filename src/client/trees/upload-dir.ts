import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import { PathFilter } from "../../filesystem/patterns/path-filter.js";
import type { FilesystemService, WriteArchiveResponse } from "../../gen/picod/v1/filesystem_pb.js";
import { type Progress, ProgressTeller } from "../files/progress.js";
import { insistently } from "../insistently.js";
import type { Connection } from "../transport.js";
import { packLocal } from "./pack-local.js";
import { sendArchive } from "./send-archive.js";
import { walkLocal } from "./walk-local.js";

/** Which local files; globs as in FindRequest. */
export interface LocalSelection {
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** Leave out `.git`, and what .gitignore files, and .picodignore files of the same form, say. Default: false; of syncDir true. */
  readonly gitignore?: boolean;
}

export interface UploadDirOptions extends LocalSelection {
  readonly user?: string;
  /** Replace the directory as a whole, or change nothing. Default: files replace what has their name, each as a whole. */
  readonly atomic?: boolean;
  readonly signal?: AbortSignal;
  /** Bytes of the archive that were handed to the connection; `total` is 0. */
  readonly onProgress?: (progress: Progress) => void;
}

/** Sends a directory as one archive, and again from its beginning after a broken connection. */
export function uploadDir(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  localRoot: string,
  path: string,
  { user = "", atomic = false, signal, onProgress, ...selection }: UploadDirOptions,
): Promise<WriteArchiveResponse> {
  const progress = new ProgressTeller(onProgress);
  return insistently(connection, signal, (options) => {
    progress.at(0);
    const archive = packLocal(walkLocal(localRoot, ...selected(selection)));
    return sendArchive(filesystem, { path, user, atomic }, archive, (bytes) => progress.add(bytes), options);
  });
}

/** The filter, and the ignore files that have a say. @throws INVALID_ARGUMENT for a malformed glob. */
export function selected({ include = [], exclude = [], gitignore = false }: LocalSelection): [PathFilter, string[]] {
  try {
    return [new PathFilter({ include, exclude, gitignore }), gitignore ? [".gitignore", ".picodignore"] : []];
  } catch (error) {
    throw error instanceof PicodError ? new ConnectError(error.message, Code.InvalidArgument) : error;
  }
}
