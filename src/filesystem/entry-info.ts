import { constants } from "node:fs";
import { posix } from "node:path";
import type { FileStats } from "../os/directory.js";
import { isRawName, pathBytes } from "../os/path-bytes.js";
import type { UserDatabase } from "../os/users.js";

export type FileKind = "file" | "directory" | "symlink" | "fifo" | "socket" | "character-device" | "block-device";

/** What PicoD says about one entry of a directory. */
export interface EntryInfo {
  readonly name: string;
  readonly kind: FileKind;
  readonly path: string;
  /** Bytes. */
  readonly size: bigint;
  /** Permission bits, 0 to 07777. */
  readonly mode: number;
  /** The ten characters of `ls -l`. */
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly uid: number;
  readonly gid: number;
  /** The bytes of a name that is not UTF-8. */
  readonly rawName: Uint8Array | undefined;
  readonly modifiedTimeNs: bigint;
  readonly accessedTimeNs: bigint;
  readonly hardLinks: bigint;
  readonly symlinkTarget: string | undefined;
  readonly etag: string;
  /** Those that begin with "user.", where they were asked for. */
  readonly xattrs?: ReadonlyMap<string, Uint8Array>;
}

const KINDS: ReadonlyMap<number, [kind: FileKind, letter: string]> = new Map([
  [constants.S_IFREG, ["file", "-"]],
  [constants.S_IFDIR, ["directory", "d"]],
  [constants.S_IFLNK, ["symlink", "l"]],
  [constants.S_IFIFO, ["fifo", "p"]],
  [constants.S_IFSOCK, ["socket", "s"]],
  [constants.S_IFCHR, ["character-device", "c"]],
  [constants.S_IFBLK, ["block-device", "b"]],
]);

export function describeEntry(path: string, stats: FileStats, users: UserDatabase, symlinkTarget?: string): EntryInfo {
  const [kind, letter] = kindAndLetter(stats);
  const mode = Number(stats.mode) & 0o7777;
  const name = posix.basename(path) || "/";
  const [uid, gid] = [Number(stats.uid), Number(stats.gid)];
  return {
    name,
    kind,
    path,
    size: stats.size,
    mode,
    permissions: letter + permissionLetters(mode),
    owner: users.userName(uid),
    group: users.groupName(gid),
    uid,
    gid,
    rawName: isRawName(name) ? pathBytes(name) : undefined,
    modifiedTimeNs: stats.mtimeNs,
    accessedTimeNs: stats.atimeNs,
    hardLinks: stats.nlink,
    symlinkTarget,
    etag: etagOf(stats),
  };
}

export function kindOf(stats: FileStats): FileKind {
  return kindAndLetter(stats)[0];
}

/** Changes whenever content or attributes do: the inode's identity, size, and both times in nanoseconds. */
export function etagOf(stats: FileStats): string {
  return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].map((part) => part.toString(36)).join("-");
}

function kindAndLetter(stats: FileStats): [FileKind, string] {
  return KINDS.get(Number(stats.mode) & constants.S_IFMT) ?? ["file", "?"];
}

/** "rwxr-xr-x", with the set-id and sticky bits shown as ls(1) does. */
function permissionLetters(mode: number): string {
  const triple = (bits: number, special: boolean, letter: string) => {
    const execute = special ? (bits & 1 ? letter : letter.toUpperCase()) : bits & 1 ? "x" : "-";
    return (bits & 4 ? "r" : "-") + (bits & 2 ? "w" : "-") + execute;
  };
  return (
    triple(mode >> 6, (mode & 0o4000) !== 0, "s") +
    triple(mode >> 3, (mode & 0o2000) !== 0, "s") +
    triple(mode, (mode & 0o1000) !== 0, "t")
  );
}
