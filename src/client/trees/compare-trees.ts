import { readlink } from "node:fs/promises";
import type { PathFilter } from "../../filesystem/patterns/path-filter.js";
import { type EntryInfo, FileType } from "../../gen/picod/v1/filesystem_pb.js";
import { decodePath } from "../../os/path-bytes.js";
import type { LocalEntry } from "./walk-local.js";

/** By paths below the two directories. */
export type LocalTree = ReadonlyMap<string, LocalEntry>;
export type RemoteTree = ReadonlyMap<string, EntryInfo>;

export function typeOf({ stats }: LocalEntry): FileType {
  if (stats.isFile()) return FileType.FILE;
  if (stats.isDirectory()) return FileType.DIRECTORY;
  return stats.isSymbolicLink() ? FileType.SYMLINK : FileType.UNSPECIFIED;
}

/** Whether an entry has to be sent. `isSame` compares the contents of files of one size. */
export async function differs(
  local: LocalEntry,
  remote: EntryInfo | undefined,
  isSame: ((local: LocalEntry, remote: EntryInfo) => Promise<boolean>) | undefined,
): Promise<boolean> {
  const type = typeOf(local);
  if (remote === undefined || remote.type !== type) return true;
  if (type === FileType.SYMLINK) return decodePath(await readlink(local.path, { encoding: "buffer" })) !== remote.symlinkTarget;
  if ((Number(local.stats.mode) & 0o7777) !== remote.mode) return true;
  if (type !== FileType.FILE) return false;
  if (local.stats.size !== remote.size) return true;
  return isSame === undefined ? local.stats.mtimeNs !== nanoseconds(remote) : !(await isSame(local, remote));
}

/**
 * What only the remote tree has: the uppermost of it first named. What is ignored stays, with the directories that lead to it. What is
 * of another type than the local entry of its name is to go, too.
 */
export function extraneous(
  local: LocalTree,
  remote: RemoteTree,
  isIgnored: (path: string, entry: EntryInfo) => boolean,
): string[] {
  const kept = new Set<string>();
  const gone: string[] = [];
  for (const [path, entry] of remote) {
    if (!isIgnored(path, entry)) continue;
    for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) kept.add(at);
  }
  let above = "";
  for (const [path, { type }] of remote) {
    const counterpart = local.get(path);
    const isThere = counterpart !== undefined && typeOf(counterpart) === type;
    if (isThere || kept.has(path) || (above !== "" && path.startsWith(`${above}/`))) continue;
    gone.push(path);
    above = path;
  }
  return gone;
}

/** For paths in tree order, with the ignore files that the local tree has. */
export function ignoredBy(filter: PathFilter, ignoreFiles: ReadonlyMap<string, readonly string[]>) {
  const add = (directory: string) => {
    for (const content of ignoreFiles.get(directory) ?? []) filter.addIgnoreFile(directory, content);
  };
  add("");
  return (path: string, { type }: EntryInfo) => {
    const isDirectory = type === FileType.DIRECTORY;
    const isIgnored = !filter.includes(path, isDirectory);
    if (isDirectory) add(path);
    return isIgnored;
  };
}

function nanoseconds({ modifiedTime }: EntryInfo): bigint | undefined {
  return modifiedTime === undefined ? undefined : modifiedTime.seconds * 1_000_000_000n + BigInt(modifiedTime.nanos);
}
