import { constants } from "node:os";
import { errno, libc, SYSCALL } from "./libc.js";
import { check } from "./system-error.js";

const CLONE_NEWNS = 0x20000;
const CLONE_NEWIPC = 0x8000000;
const AT_FDCWD = -100;
const AT_EMPTY_PATH = 0x1000;
const AT_RECURSIVE = 0x8000;
const OPEN_TREE_CLONE = 1;
const O_CLOEXEC = 0o2000000;
const O_PATH = 0o10000000;
const MOVE_MOUNT_EMPTY_PATHS = 0x44;
const MOUNT_ATTR_RDONLY = 1n;
const MS_SLAVE = 1n << 19n;
const RESOLVE_NO_SYMLINKS = 0x04n;

/**
 * Gives the calling thread, and what it starts, mounts of its own in which everything but these paths is read-only: Landlock knows
 * nothing of modes, owners, times and extended attributes; nor does it know shared memory and queues of System V, so these are its own too. False, and nothing is changed, without CAP_SYS_ADMIN, or where the root is
 * not a mount. @throws the errno of all else that fails.
 */
export function makeRestReadOnly(writable: readonly string[]): boolean {
  if (libc.syscall3(SYSCALL.unshare, CLONE_NEWNS | CLONE_NEWIPC, 0, 0) < 0) {
    if ([constants.errno.EPERM, constants.errno.ENOSYS].includes(errno())) return false;
    check(-1, "unshare(CLONE_NEWNS | CLONE_NEWIPC)");
  }
  // Mounts that are made later still arrive, and none goes back.
  if (setAttributes({ propagation: MS_SLAVE }) < 0) {
    if ([constants.errno.EINVAL, constants.errno.EPERM, constants.errno.ENOSYS].includes(errno())) return false;
    check(-1, "mount_setattr");
  }
  const trees = writable.map(cloneTree).filter((tree) => tree !== undefined);
  check(setAttributes({ set: MOUNT_ATTR_RDONLY }), "mount_setattr(MOUNT_ATTR_RDONLY)");
  for (const { path, tree } of trees) {
    const place = openPath(path);
    if (place >= 0) check(libc.move_mount(SYSCALL.move_mount, tree, "", place, "", MOVE_MOUNT_EMPTY_PATHS), "move_mount", path);
    if (place >= 0) libc.close(place);
    libc.close(tree);
  }
  return true;
}

function setAttributes({ set = 0n, propagation = 0n }: { readonly set?: bigint; readonly propagation?: bigint }): number {
  // struct mount_attr: set, cleared, propagation, user namespace.
  const attributes = BigUint64Array.of(set, 0n, propagation, 0n);
  return libc.mount_setattr(SYSCALL.mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, attributes, attributes.byteLength);
}

/** A copy of the mount there, which stays as it is. Undefined where nothing is. */
function cloneTree(path: string): { readonly path: string; readonly tree: number } | undefined {
  const fd = openPath(path);
  if (fd < 0) return undefined;
  const flags = AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | O_CLOEXEC;
  const tree = check(libc.open_tree(SYSCALL.open_tree, fd, "", flags), "open_tree", path);
  libc.close(fd);
  return { path, tree };
}

function openPath(path: string): number {
  const how = BigUint64Array.of(BigInt(O_PATH | O_CLOEXEC), 0n, RESOLVE_NO_SYMLINKS);
  return libc.openat2(SYSCALL.openat2, AT_FDCWD, path, how, how.byteLength);
}
