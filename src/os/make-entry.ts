import { libc, SYSCALL } from "./libc.js";
import { encodePath } from "./path-bytes.js";
import { actingGuard } from "./path-guard.js";
import { check } from "./system-error.js";

const AT_FDCWD = -100;
const AT_SYMLINK_FOLLOW = 0x400;

/** Makes a symbolic link in an opened directory. */
export function makeSymbolicLinkIn(directoryFd: number, name: string, target: string): void {
  actingGuard()?.assertName(directoryFd, name, "write");
  check(libc.symlinkat(encodePath(target), directoryFd, encodePath(name)), "symlink", name);
}

/** Makes a FIFO, or, as root, a device node. @param mode file type and permission bits, narrowed by the umask. */
export function makeNodeIn(directoryFd: number, name: string, mode: bigint, device: bigint): void {
  actingGuard()?.assertName(directoryFd, name, "write");
  check(libc.mknodat(SYSCALL.mknodat, directoryFd, encodePath(name), Number(mode), Number(device)), "mknod", name);
}

/** Gives what was opened, for naming it or for reading, one more name. @throws EXDEV, EMLINK, EPERM, errno of linkat(2). */
export function linkIn(fd: number, directoryFd: number, name: string): void {
  actingGuard()?.assertLinks(fd, directoryFd, name);
  check(libc.linkat(AT_FDCWD, `/proc/self/fd/${fd}`, directoryFd, encodePath(name), AT_SYMLINK_FOLLOW), "link", name);
}
