import { constants } from "node:fs";
import { libc, SYSCALL } from "./libc.js";
import { encodePath } from "./path-bytes.js";
import { check, errnoName } from "./system-error.js";

/** What stat(2) says, named as in Node's BigIntStats, of which this is a part. */
export interface FileStats {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly mode: bigint;
  readonly nlink: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
  readonly rdev: bigint;
  readonly size: bigint;
  readonly blocks: bigint;
  readonly atimeNs: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_NO_AUTOMOUNT = 0x800;
const STATX_BASIC_STATS = 0x7ff;
const STATX_BYTES = 256;
const NS_PER_SECOND = 1_000_000_000n;

const statxResult = new DataView(new ArrayBuffer(STATX_BYTES));
const statxBytes = new Uint8Array(statxResult.buffer);

/** Describes a name of an opened directory; a symbolic link itself. @throws errno of statx(2). */
export function statIn(directoryFd: number, name: string): FileStats {
  const flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  check(libc.statx(SYSCALL.statx, directoryFd, encodePath(name), flags, STATX_BASIC_STATS, statxBytes), "stat", name);
  const u32 = (offset: number) => BigInt(statxResult.getUint32(offset, true));
  const u64 = (offset: number) => statxResult.getBigUint64(offset, true);
  const time = (offset: number) => statxResult.getBigInt64(offset, true) * NS_PER_SECOND + u32(offset + 8);
  return {
    nlink: u32(16),
    uid: u32(20),
    gid: u32(24),
    mode: BigInt(statxResult.getUint16(28, true)),
    ino: u64(32),
    size: u64(40),
    blocks: u64(48),
    atimeNs: time(64),
    ctimeNs: time(96),
    mtimeNs: time(112),
    rdev: deviceNumber(statxResult.getUint32(128, true), statxResult.getUint32(132, true)),
    dev: deviceNumber(statxResult.getUint32(136, true), statxResult.getUint32(140, true)),
  };
}

const STATX_ATTR_MOUNT_ROOT = 0x2000n;

/** Whether something is mounted on a name of an opened directory; kernels before 5.8 do not say. @throws errno of statx(2). */
export function isMountPoint(directoryFd: number, name: string): boolean {
  const flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  check(libc.statx(SYSCALL.statx, directoryFd, encodePath(name), flags, 0, statxBytes), "stat", name);
  return (statxResult.getBigUint64(8, true) & STATX_ATTR_MOUNT_ROOT) !== 0n;
}

const AT_EACCESS = 0x200;
const W_OK = 2;
const X_OK = 1;

/** @throws EACCES, EROFS when names may not be added to and removed from an opened directory; kernels before 5.8 do not say. */
export function assertMayChangeNames(directoryFd: number): void {
  try {
    check(libc.faccessat2(SYSCALL.faccessat2, directoryFd, ".", W_OK | X_OK, AT_EACCESS), "access");
  } catch (error) {
    if (errnoName(error) !== "ENOSYS") throw error;
  }
}

/** As makedev(3), so that it equals st_dev. */
function deviceNumber(major: number, minor: number): bigint {
  const [high, low] = [BigInt(major), BigInt(minor)];
  return ((high & 0xfffff000n) << 32n) | ((high & 0xfffn) << 8n) | ((low & 0xffffff00n) << 12n) | (low & 0xffn);
}

const DIRENT_HEADER_BYTES = 19;
const entries = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * The next names of a directory that was opened for reading, `.` and `..` left out, in the order of the file system; undefined at its end. The
 * names are parts of one buffer that the next call uses again. @throws errno of getdents64(2).
 */
export function readNames(directoryFd: number): Buffer[] | undefined {
  const bytes = check(libc.getdents64(SYSCALL.getdents64, directoryFd, entries, entries.length), "readdir");
  if (bytes === 0) return undefined;
  const names: Buffer[] = [];
  for (let at = 0; at < bytes; at += entries.readUInt16LE(at + 16)) {
    const start = at + DIRENT_HEADER_BYTES;
    const name = entries.subarray(start, entries.indexOf(0, start));
    if (!isDots(name)) names.push(name);
  }
  return names;
}

function isDots(name: Buffer): boolean {
  return name[0] === 0x2e && (name.length === 1 || (name.length === 2 && name[1] === 0x2e));
}

/** Whether a mode is a directory's. */
export function isDirectory({ mode }: Pick<FileStats, "mode">): boolean {
  return (Number(mode) & constants.S_IFMT) === constants.S_IFDIR;
}

/** Whether a mode is a symbolic link's. */
export function isSymbolicLink({ mode }: Pick<FileStats, "mode">): boolean {
  return (Number(mode) & constants.S_IFMT) === constants.S_IFLNK;
}
