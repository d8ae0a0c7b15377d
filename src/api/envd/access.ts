import type { Caller } from "../../call.js";
import type { Access } from "../../filesystem/access.js";
import type { User } from "../../os/users.js";
import { permitUser } from "../../policy/permit-user.js";
import { rootFor } from "../../resolve-file.js";
import type { Sandbox } from "../../sandbox.js";
import { configuredUser } from "./acting-user.js";
import type { EnvdState } from "./state.js";

/**
 * As the contract has it, a user says where relative paths begin and whose what is made becomes, and limits nothing: files are read and
 * written with the daemon's rights.
 */
export interface EnvdAccess extends Access {
  /** Whom the request names. */
  readonly named: User;
}

/** `~` of a policy is the default user's: whoever is named is named for paths alone. @throws POLICY_DENIED. */
export function accessFor(sandbox: Sandbox, state: EnvdState, named: User, caller: Caller | undefined): EnvdAccess {
  const { users } = sandbox;
  const usual = configuredUser(sandbox, state);
  permitUser(users, caller?.capability, named.name, usual);
  const own = users.find(String(process.getuid?.() ?? 0)) ?? named;
  return { root: rootFor(sandbox, caller, users.find(usual)?.home ?? ""), users, user: own, owner: named, named };
}
