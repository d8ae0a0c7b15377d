import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import type { EntryInfo, FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import { LocalSource } from "../files/local-source.js";
import { type Progress, ProgressTeller } from "../files/progress.js";
import { insistently } from "../insistently.js";
import type { Connection } from "../transport.js";
import { differs, extraneous, ignoredBy, type LocalTree, type RemoteTree, typeOf } from "./compare-trees.js";
import { packLocal } from "./pack-local.js";
import { remoteSha256 } from "./remote-sha256.js";
import { sendArchive } from "./send-archive.js";
import { type LocalSelection, selected } from "./upload-dir.js";
import { type LocalEntry, walkLocal } from "./walk-local.js";

export interface SyncDirOptions extends LocalSelection {
  readonly user?: string;
  /** Remove what is not there locally; what is ignored or excluded stays. Default: false. */
  readonly delete?: boolean;
  /** Compare the contents of files of one size by SHA-256 instead of their modification times. Default: false. */
  readonly hash?: boolean;
  readonly signal?: AbortSignal;
  /** Bytes of the archive that were handed to the connection; `total` is 0. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface SyncedDir {
  /** Paths below the directory. */
  readonly sent: readonly string[];
  readonly removed: readonly string[];
  /** Entries that were the same on both sides. */
  readonly unchanged: number;
}

/** Compares and sends what differs; after a broken connection it compares again, and sends what is left. */
export async function syncDir(
  filesystem: Client<typeof FilesystemService>,
  connection: Connection,
  localRoot: string,
  remoteRoot: string,
  { user = "", delete: deletes = false, hash = false, signal, onProgress, gitignore = true, ...patterns }: SyncDirOptions,
): Promise<SyncedDir> {
  const selection = { ...patterns, gitignore };
  const { entries: local, ignoreFiles } = await localTree(localRoot, selection);
  const progress = new ProgressTeller(onProgress);
  const sent = new Set<string>();
  const removed = new Set<string>();
  return insistently(connection, signal, async (options, retries) => {
    progress.at(0);
    const remote = await remoteTree(filesystem, remoteRoot, user, options);
    const isSame = hash ? (near: LocalEntry, far: EntryInfo) => hasSameContent(connection, near, far, user, signal) : undefined;
    const changed: LocalEntry[] = [];
    for (const entry of local.values()) {
      if (typeOf(entry) !== 0 && (await differs(entry, remote.get(entry.relativePath), isSame))) changed.push(entry);
    }
    if (deletes) {
      for (const path of extraneous(local, remote, ignoredBy(selected(selection)[0], ignoreFiles))) {
        removed.add(path);
        await filesystem.remove({ path: `${remoteRoot}/${path}`, user, recursive: true, missingOk: true }, options);
        retries.succeeded();
      }
    }
    for (const { relativePath } of changed) sent.add(relativePath);
    if (changed.length > 0 || remote.size === 0) {
      await sendArchive(filesystem, { path: remoteRoot, user }, packLocal(changed), (bytes) => progress.add(bytes), options);
    }
    return { sent: [...sent], removed: [...removed], unchanged: local.size - sent.size };
  });
}

async function localTree(root: string, selection: LocalSelection) {
  const ignoreFiles = new Map<string, string[]>();
  const entries = new Map<string, LocalEntry>();
  const onIgnoreFile = (directory: string, content: string) => {
    ignoreFiles.set(directory, [...(ignoreFiles.get(directory) ?? []), content]);
  };
  for await (const entry of walkLocal(root, ...selected(selection), onIgnoreFile)) entries.set(entry.relativePath, entry);
  return { entries: entries as LocalTree, ignoreFiles };
}

/** Empty when there is no such directory. */
async function remoteTree(
  filesystem: Client<typeof FilesystemService>,
  path: string,
  user: string,
  options: CallOptions,
): Promise<RemoteTree> {
  const tree = new Map<string, EntryInfo>();
  try {
    const { entry: root } = await filesystem.stat({ path, user }, options);
    const above = `${root?.path.replace(/\/$/, "")}/`;
    for await (const { entries } of filesystem.listDirectory({ path, user, depth: 0 }, options)) {
      for (const entry of entries) tree.set(entry.path.slice(above.length), entry);
    }
  } catch (error) {
    if (ConnectError.from(error).code !== Code.NotFound) throw error;
  }
  return tree;
}

async function hasSameContent(
  connection: Connection,
  local: LocalEntry,
  remote: EntryInfo,
  user: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  await using source = await LocalSource.open(local.path);
  const [near, far] = await Promise.all([source.sha256(), remoteSha256(connection, remote.path, user, signal)]);
  return near === far;
}
