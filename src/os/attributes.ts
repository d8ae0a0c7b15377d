import { chmodSync } from "node:fs";
import { libc } from "./libc.js";
import { decodePath, encodePath } from "./path-bytes.js";
import { actingGuard } from "./path-guard.js";
import { check, errnoName } from "./system-error.js";

const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
/** Stands for an id that stays. */
const KEEP_ID = 0xffffffff;
/** Stands for a time that stays; utimensat(2). */
const UTIME_OMIT = 0x3ffffffen;
const NS_PER_SECOND = 1_000_000_000n;

// All of these work with a descriptor that was opened with O_PATH, so that the user need not be able to read or write the file; with one
// of a symbolic link they are about the link. Where a call takes no such descriptor, its name in /proc leads to the same file.
const nameOf = (fd: number): string => `/proc/self/fd/${fd}`;

/** Undefined leaves as it is. @throws errno of fchownat(2). */
export function changeOwner(fd: number, uid: number | undefined, gid: number | undefined): void {
  actingGuard()?.assertChanges(fd);
  check(libc.fchownat(fd, "", uid ?? KEEP_ID, gid ?? KEEP_ID, AT_EMPTY_PATH), "chown");
}

/** Permission bits, exactly. @throws errno of chmod(2). */
export function changeMode(fd: number, mode: number): void {
  actingGuard()?.assertChanges(fd);
  chmodSync(nameOf(fd), mode);
}

/** Nanoseconds since 1970; undefined leaves as it is. @throws errno of utimensat(2). */
export function changeTimes(fd: number, accessedNs: bigint | undefined, modifiedNs: bigint | undefined): void {
  actingGuard()?.assertChanges(fd);
  const times = BigInt64Array.of(...timespec(accessedNs), ...timespec(modifiedNs));
  check(libc.utimensat(AT_FDCWD, nameOf(fd), times, 0), "utime");
}

function timespec(ns: bigint | undefined): [seconds: bigint, ns: bigint] {
  if (ns === undefined) return [0n, UTIME_OMIT];
  const rest = ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  return [(ns - rest) / NS_PER_SECOND, rest];
}

/** XATTR_SIZE_MAX and XATTR_LIST_MAX of Linux: nothing is ever longer. */
const xattrBytes = Buffer.allocUnsafeSlow(64 * 1024);

/** Names as decodePath makes them. @throws errno of setxattr(2). */
export function setXattr(fd: number, name: string, value: Uint8Array): void {
  actingGuard()?.assertChanges(fd);
  check(libc.setxattr(nameOf(fd), encodePath(name), value, value.length, 0), "setxattr");
}

/** One that is missing is no error. @throws errno of removexattr(2). */
export function removeXattr(fd: number, name: string): void {
  actingGuard()?.assertChanges(fd);
  try {
    check(libc.removexattr(nameOf(fd), encodePath(name)), "removexattr");
  } catch (error) {
    if (errnoName(error) !== "ENODATA") throw error;
  }
}

/** Those that begin with `prefix`; none where the file system has no such thing. @throws errno of getxattr(2). */
export function readXattrs(fd: number, prefix: string): Map<string, Buffer> {
  const values = new Map<string, Buffer>();
  for (const name of listXattrs(fd).filter((each) => each.startsWith(prefix))) {
    try {
      const length = check(libc.getxattr(nameOf(fd), encodePath(name), xattrBytes, xattrBytes.length), "getxattr");
      values.set(name, Buffer.from(xattrBytes.subarray(0, length)));
    } catch (error) {
      // It was removed after its name was read.
      if (errnoName(error) !== "ENODATA") throw error;
    }
  }
  return values;
}

function listXattrs(fd: number): string[] {
  try {
    const length = check(libc.listxattr(nameOf(fd), xattrBytes, xattrBytes.length), "listxattr");
    const names: string[] = [];
    for (let at = 0; at < length; ) {
      const end = xattrBytes.indexOf(0, at);
      names.push(decodePath(xattrBytes.subarray(at, end)));
      at = end + 1;
    }
    return names;
  } catch (error) {
    if (["ENOTSUP", "EOPNOTSUPP"].includes(errnoName(error) ?? "")) return [];
    throw error;
  }
}
