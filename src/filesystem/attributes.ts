import { changeMode, changeOwner, changeTimes, readXattrs, setXattr } from "../os/attributes.js";
import { type FileStats, isSymbolicLink } from "../os/directory.js";
import { errnoName } from "../os/system-error.js";
import { kindOf } from "./entry-info.js";

/** What a copy has of its original besides the content. */
export interface Attributes {
  readonly stats: FileStats;
  readonly xattrs: readonly (readonly [name: string, value: Buffer])[];
}

/** Access lists too: without them a copy would let others in, or keep them out, where the original does not. */
const KEPT_XATTRS = /^(user\.|system\.posix_acl_)/;
/** What cp(1) takes away where it would be about another owner than it was. */
const ID_BITS: Readonly<Record<string, number>> = { file: 0o7000, directory: 0o6000 };

/** Reads the attributes of what was opened. @throws errno of getxattr(2). */
export function attributesOf(fd: number, stats: FileStats): Attributes {
  return { stats, xattrs: [...readXattrs(fd, "")].filter(([name]) => KEPT_XATTRS.test(name)) };
}

/**
 * Gives what was made, and opened, the attributes of its original, as cp(1) -a does: where the owner cannot be kept, set-user-id and its
 * like are not either. Times are last, since all else changes them.
 */
export function giveAttributes(fd: number, { stats, xattrs }: Attributes): void {
  const ownerKept = giveOwner(fd, stats);
  for (const [name, value] of xattrs) unlessRefused(UNSUPPORTED, () => setXattr(fd, name, value));
  if (!isSymbolicLink(stats)) changeMode(fd, Number(stats.mode) & 0o7777 & ~(ownerKept ? 0 : (ID_BITS[kindOf(stats)] ?? 0)));
  changeTimes(fd, stats.atimeNs, stats.mtimeNs);
}

/** The same for a file that existed: it stays its owner's, and what only that one may change stays too. */
export function giveAttributesInPlace(fd: number, { stats, xattrs }: Attributes): void {
  for (const [name, value] of xattrs) unlessRefused([...UNSUPPORTED, ...FORBIDDEN], () => setXattr(fd, name, value));
  unlessRefused(FORBIDDEN, () => changeMode(fd, Number(stats.mode) & 0o777));
  unlessRefused(FORBIDDEN, () => changeTimes(fd, stats.atimeNs, stats.mtimeNs));
}

/** Only root may give files away; others can still keep a group that they are in. */
function giveOwner(fd: number, { uid, gid }: FileStats): boolean {
  if (unlessRefused(FORBIDDEN, () => changeOwner(fd, Number(uid), Number(gid)))) return true;
  unlessRefused(FORBIDDEN, () => changeOwner(fd, undefined, Number(gid)));
  return false;
}

const UNSUPPORTED = ["ENOTSUP", "EOPNOTSUPP"];
/** The user may not, or the file system or user namespace knows no such owner. */
const FORBIDDEN = ["EPERM", "EACCES", "EINVAL"];

function unlessRefused(errnos: readonly string[], call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (errnos.includes(errnoName(error) ?? "")) return false;
    throw error;
  }
}
