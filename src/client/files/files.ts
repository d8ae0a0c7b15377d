import type { Client } from "@connectrpc/connect";
import type {
  EntryInfo,
  FilesystemService,
  FindSummary,
  SearchMatch,
  SearchSummary,
  WriteArchiveResponse,
} from "../../gen/picod/v1/filesystem_pb.js";
import type { Connection } from "../transport.js";
import { type DownloadDirOptions, type DownloadedDir, downloadDir } from "../trees/download-dir.js";
import { type SyncDirOptions, type SyncedDir, syncDir } from "../trees/sync-dir.js";
import { type UploadDirOptions, uploadDir } from "../trees/upload-dir.js";
import { type DownloadOptions, download } from "./download.js";
import { type FindOptions, find, type ListOptions, type ListSummary, list, type SearchOptions, search } from "./listings.js";
import type { Results } from "./results.js";
import { createSimpleCalls, type SimpleCalls } from "./simple-calls.js";
import { type UploadOptions, upload } from "./upload.js";
import { type WatchEvent, type WatchOptions, watch } from "./watch.js";

/**
 * Files of the sandbox. Paths there are absolute, or relative to the acting user's working directory; `user` says who acts. What is safe
 * to repeat is repeated while the connection breaks or the daemon is restarted, for some 15 s without progress. Errors of the daemon
 * and of the connection are ConnectErrors, those of the local disk Node's own. Aborting a `signal` ends a call with CANCELED.
 */
export interface Files extends SimpleCalls {
  /**
   * Stores a local file in the sandbox whole, verified by SHA-256, or not at all. Goes on with what is missing after a broken connection,
   * and begins anew with a restarted daemon. @throws as WriteFile and CommitUpload; DATA_LOSS when the local file changes meanwhile.
   */
  upload(localPath: string, remotePath: string, options?: UploadOptions): Promise<EntryInfo>;
  /**
   * Puts a file of the sandbox in place of a local one, whole and verified; the local file stays what it was after any error. Goes on
   * after a broken connection with the same version of the file, and begins anew when that has changed; what changes each time, such as a
   * log, is taken as it is the fourth time. @throws as ReadFile.
   */
  download(remotePath: string, localPath: string, options?: DownloadOptions): Promise<EntryInfo>;
  /** The entries of a directory, and with `depth` (0: no limit) what is below, in a stable order. @throws as ListDirectory. */
  list(path: string, options?: ListOptions): Results<EntryInfo, ListSummary>;
  /** Entries below a directory that match all of what is asked for, in the order of `list`. @throws as Find. */
  find(path: string, options?: FindOptions): Results<EntryInfo, FindSummary>;
  /** Lines of files that hold a text, or with `regex` match an expression (RE2 syntax). @throws as Search. */
  search(path: string, pattern: string, options?: SearchOptions): Results<SearchMatch, SearchSummary>;
  /**
   * What changes in a directory, from the event `ready` on, until the directory is gone or the iteration is left. After a broken connection
   * it watches again and says `lost`: changes may be missing, as they may when they came too fast. @throws as WatchDirectory.
   */
  watch(path: string, options?: WatchOptions): AsyncIterable<WatchEvent>;
  /**
   * Unpacks a local directory into one of the sandbox, with modes, times, links and hard links. After a broken connection it is sent again.
   * @throws as WriteArchive; INVALID_ARGUMENT for a malformed glob.
   */
  uploadDir(localRoot: string, remoteRoot: string, options?: UploadDirOptions): Promise<WriteArchiveResponse>;
  /**
   * Puts what is in a directory of the sandbox into a local one, with permission bits, times, links, hard links and holes, when all of it
   * has arrived and is verified. Files there are replaced; other files stay. Links that lead out are not made, but named.
   * @throws as ReadArchive; DATA_LOSS for an archive with `..` or absolute names.
   */
  downloadDir(remoteRoot: string, localRoot: string, options?: DownloadDirOptions): Promise<DownloadedDir>;
  /**
   * Makes a directory of the sandbox like a local one, sending only what differs by type, mode, size and modification time or, with `hash`,
   * content. Honours .gitignore and .picodignore unless `gitignore` is false. Each file is replaced as a whole; all together are not.
   * @throws as ListDirectory, Remove and WriteArchive; INVALID_ARGUMENT for a malformed glob.
   */
  syncDir(localRoot: string, remoteRoot: string, options?: SyncDirOptions): Promise<SyncedDir>;
}

export function createFiles(filesystem: Client<typeof FilesystemService>, connection: Connection): Files {
  return {
    ...createSimpleCalls(filesystem, connection),
    syncDir: (localRoot, remoteRoot, options = {}) => syncDir(filesystem, connection, localRoot, remoteRoot, options),
    uploadDir: (localRoot, remoteRoot, options = {}) => uploadDir(filesystem, connection, localRoot, remoteRoot, options),
    downloadDir: (remoteRoot, localRoot, options = {}) => downloadDir(filesystem, connection, remoteRoot, localRoot, options),
    list: (path, options = {}) => list(filesystem, connection, path, options),
    find: (path, options = {}) => find(filesystem, connection, path, options),
    search: (path, pattern, options = {}) => search(filesystem, connection, path, pattern, options),
    watch: (path, options = {}) => watch(filesystem, connection, path, options),
    upload: (localPath, remotePath, options = {}) => upload(filesystem, connection, localPath, remotePath, options),
    download: (remotePath, localPath, options = {}) => download(filesystem, connection, remotePath, localPath, options),
  };
}
