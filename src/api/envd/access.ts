import type { Caller } from "../../call.js";
import type { Access } from "../../filesystem/access.js";
import type { User } from "../../os/users.js";
import { rootFor } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";

/**
 * As the contract has it, a user says where relative paths begin and whose what is made becomes, and limits nothing: files are read and
 * written with the daemon's rights.
 */
export interface EnvdAccess extends Access {
  /** Whom the request names. */
  readonly named: User;
}

export function accessFor(sandbox: Sandbox, named: User, caller: Caller | undefined): EnvdAccess {
  const { users } = sandbox;
  const own = users.find(String(process.getuid?.() ?? 0)) ?? named;
  return { root: rootFor(sandbox, caller, named.home), users, user: own, owner: named, named };
}
