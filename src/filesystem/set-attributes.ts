import { closeSync, constants, fstatSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { changeMode, changeOwner, changeTimes, removeXattr, setXattr } from "../os/attributes.js";
import { withFileRightsOf } from "../os/credentials.js";
import { pathBytes } from "../os/path-bytes.js";
import { O_PATH } from "../os/root.js";
import { withPath } from "../os/system-error.js";
import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { describeOpened } from "./stat.js";

/** XATTR_NAME_MAX of Linux. */
const MAX_XATTR_NAME_BYTES = 255;

/** What is absent stays. */
export interface AttributeChanges {
  /** Permission bits, 0 to 07777. */
  readonly mode?: number | undefined;
  /** Name or number. */
  readonly owner?: string | undefined;
  readonly group?: string | undefined;
  readonly modifiedTimeNs?: bigint | undefined;
  readonly accessedTimeNs?: bigint | undefined;
  readonly setXattrs?: Readonly<Record<string, Uint8Array>>;
  readonly removeXattrs?: readonly string[];
}

/**
 * Changes the attributes of what a path names, in the order owner, mode, xattrs, times: changing the owner clears set-id bits. With
 * `noFollow` a symbolic link itself, which has neither mode nor user xattrs.
 * @throws INVALID_ARGUMENT, USER_NOT_FOUND, GROUP_NOT_FOUND before anything is changed; errno, which leaves what came before it changed.
 */
export function setAttributes(access: Access, path: string, changes: AttributeChanges, noFollow = false): EntryInfo {
  const { mode, owner, group, modifiedTimeNs, accessedTimeNs, setXattrs = {}, removeXattrs = [] } = changes;
  const uid = owner === undefined ? undefined : findUser(access, owner);
  const gid = group === undefined ? undefined : findGroup(access, group);
  const xattrNames = [...Object.keys(setXattrs), ...removeXattrs];
  for (const name of xattrNames) assertXattrName(name);
  const flags = noFollow ? O_PATH | constants.O_NOFOLLOW : O_PATH;
  const fd = withFileRightsOf(access, () => access.root.open(path, flags, 0, "write"));
  try {
    if (fstatSync(fd).isSymbolicLink()) {
      if (mode !== undefined) throw linkHasNone(path, "mode");
      if (xattrNames.length > 0) throw linkHasNone(path, "user xattrs");
    }
    withFileRightsOf(access, () => {
      if (uid !== undefined || gid !== undefined) changeOwner(fd, uid, gid);
      if (mode !== undefined) changeMode(fd, mode);
      for (const [name, value] of Object.entries(setXattrs)) setXattr(fd, name, value);
      for (const name of removeXattrs) removeXattr(fd, name);
      if (modifiedTimeNs !== undefined || accessedTimeNs !== undefined) changeTimes(fd, accessedTimeNs, modifiedTimeNs);
    });
    return describeOpened(access, path, fd);
  } catch (error) {
    throw withPath(error, path);
  } finally {
    closeSync(fd);
  }
}

function findUser({ users }: Access, owner: string): number {
  const found = users.find(owner);
  if (found === undefined) throw new PicodError("USER_NOT_FOUND", `no such user: ${JSON.stringify(owner)}`, { user: owner });
  return found.uid;
}

function findGroup({ users }: Access, group: string): number {
  const found = users.findGroup(group);
  if (found === undefined) throw new PicodError("GROUP_NOT_FOUND", `no such group: ${JSON.stringify(group)}`, { group });
  return found;
}

function assertXattrName(name: string): void {
  const why = !/^user\../s.test(name)
    ? 'it does not begin with "user."'
    : name.includes("\0")
      ? "it holds a NUL byte"
      : pathBytes(name).length > MAX_XATTR_NAME_BYTES
        ? `it is longer than ${MAX_XATTR_NAME_BYTES} bytes`
        : undefined;
  if (why !== undefined) throw new PicodError("INVALID_ARGUMENT", `invalid xattr: ${JSON.stringify(name)}: ${why}`);
}

function linkHasNone(path: string, what: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `cannot change the ${what} of ${path}: a symbolic link has none`, { path });
}
