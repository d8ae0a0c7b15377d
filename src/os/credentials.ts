import { constants } from "node:os";
import { Capabilities } from "./capabilities.js";
import { libc, SYSCALL } from "./libc.js";
import { guardedBy, type PathGuard } from "./path-guard.js";
import { check, systemError } from "./system-error.js";
import type { User } from "./users.js";

const KEEP = -1;
const NGROUPS_MAX = 65_536;
const ownUid = process.getuid?.() ?? 0;
const ownGid = process.getgid?.() ?? 0;
const ownGroups = readGroups();
const ownCapabilities = new Capabilities();
let actsAsAnother = false;

/** Whether this daemon may act as that user: its own user always, another one only when it is root. */
export function canActAs(user: User): boolean {
  return user.uid === ownUid || ownUid === 0;
}

/** Whether a child of that user is made by taking its identity for a moment. */
export function changesIdentity(user: User): boolean {
  return ownUid === 0 && user.uid !== 0;
}

/** Whether the main thread has the file rights of another user than the daemon's own at this moment. */
export function hasRightsOfAnother(): boolean {
  return actsAsAnother;
}

/** What a file operation may do: what its user may, and what the root that it works on lets through. */
export interface FileRights {
  readonly user: User;
  /** Undefined: paths are not judged. */
  readonly root?: { readonly guard: PathGuard | undefined };
}

/**
 * Runs one synchronous file operation judged by the guard of its root, and with exactly the rights of its user, as NFS servers do: file system uid, gid and groups of
 * the main thread are switched around it, and no capability is in effect for that moment. setfsuid(2) would leave some, of which
 * CAP_SYS_PTRACE opens much of /proc. Nothing may be awaited inside. @throws EPERM when this root may not become others (no
 * CAP_SETUID or CAP_SETGID).
 */
export function withFileRightsOf<T>({ user, root }: FileRights, operation: () => T): T {
  if (root?.guard === undefined) return withUserRights(user, operation);
  return guardedBy(root.guard, () => withUserRights(user, operation));
}

function withUserRights<T>(user: User, operation: () => T): T {
  if (!changesIdentity(user)) return operation();
  try {
    setGroups(Uint32Array.from(user.groups));
    setFileId("setfsgid", user.gid);
    setFileId("setfsuid", user.uid);
    ownCapabilities.suspend();
    actsAsAnother = true;
    return operation();
  } finally {
    actsAsAnother = false;
    ownCapabilities.resume();
    setFileId("setfsuid", ownUid);
    setFileId("setfsgid", ownGid);
    setGroups(ownGroups);
  }
}

/**
 * Runs `spawn` while the main thread is `user`, so that the child is. The saved uid stays 0 to come back with; execve(2)
 * replaces it in the child, which is left without any capability. @throws EPERM as above.
 */
export function withIdentityOf<T>(user: User, spawn: () => T): T {
  if (!changesIdentity(user)) return spawn();
  try {
    setGroups(Uint32Array.from(user.groups));
    check(libc.syscall3(SYSCALL.setresgid, user.gid, user.gid, ownGid), "setresgid");
    check(libc.syscall3(SYSCALL.setresuid, user.uid, user.uid, ownUid), "setresuid");
    return spawn();
  } finally {
    check(libc.syscall3(SYSCALL.setresuid, ownUid, ownUid, KEEP), "setresuid");
    check(libc.syscall3(SYSCALL.setresgid, ownGid, ownGid, KEEP), "setresgid");
    setGroups(ownGroups);
  }
}

/** Not process.getgroups(), which adds the effective group to the list. */
function readGroups(): Uint32Array {
  const groups = new Uint32Array(NGROUPS_MAX);
  return groups.slice(0, check(libc.getgroups(groups.length, groups), "getgroups"));
}

function setGroups(groups: Uint32Array): void {
  check(libc.setgroups(SYSCALL.setgroups, groups.length, groups), "setgroups");
}

/** setfsuid(2) never fails; only asking again tells whether it was obeyed. */
function setFileId(call: "setfsuid" | "setfsgid", id: number): void {
  libc.syscall3(SYSCALL[call], id, 0, 0);
  if (libc.syscall3(SYSCALL[call], KEEP, 0, 0) !== id) throw systemError(call, undefined, constants.errno.EPERM);
}
