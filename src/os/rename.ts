import { constants } from "node:os";
import { statIn } from "./directory.js";
import { libc } from "./libc.js";
import { encodePath } from "./path-bytes.js";
import { actingGuard } from "./path-guard.js";
import { check, errnoName, systemError } from "./system-error.js";

/** A name in an opened directory. */
export interface NameIn {
  readonly directoryFd: number;
  readonly name: string;
}

const RENAME_NOREPLACE = 1;
const RENAME_EXCHANGE = 2;

/** What may be at the new name: `replace` as rename(2), `free` nothing, `exchange` something that gets the old name. */
export type RenameMode = "replace" | "free" | "exchange";

const FLAGS: Readonly<Record<RenameMode, number>> = { replace: 0, free: RENAME_NOREPLACE, exchange: RENAME_EXCHANGE };

/** Renames in one step. @throws EEXIST with `free`; errno of renameat2(2). */
export function rename(from: NameIn, to: NameIn, mode: RenameMode): void {
  actingGuard()?.assertRenames(from, to, mode === "exchange");
  try {
    renameWith(from, to, FLAGS[mode]);
  } catch (error) {
    // File systems that know no flags (9p, NFS) say so with EINVAL: there a name is free when it was a moment ago.
    if (mode !== "free" || errnoName(error) !== "EINVAL") throw error;
    if (isTaken(to)) throw systemError("rename", to.name, constants.errno.EEXIST);
    renameWith(from, to, 0);
  }
}

function renameWith(from: NameIn, to: NameIn, flags: number): void {
  check(libc.renameat2(from.directoryFd, encodePath(from.name), to.directoryFd, encodePath(to.name), flags), "rename", to.name);
}

function isTaken({ directoryFd, name }: NameIn): boolean {
  try {
    statIn(directoryFd, name);
    return true;
  } catch (error) {
    if (errnoName(error) === "ENOENT") return false;
    throw error;
  }
}
