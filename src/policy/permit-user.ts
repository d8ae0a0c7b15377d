import type { UserDatabase } from "../os/users.js";
import type { Capability } from "./capability.js";
import { policyDenied } from "./policy-denied.js";

/** In `users`: whoever there is. */
export const EVERY_USER = "*";

/**
 * Whether a request may act as whom it names: the default user, and those of `users`. Names and numbers of one entry of the user database are the
 * same. @param name empty: nobody in particular. @param usual the default user. @throws POLICY_DENIED, whether or not there is such a user.
 */
export function permitUser(users: UserDatabase, capability: Capability | undefined, name: string, usual: string): void {
  if (capability === undefined || name === "" || capability.users.includes(EVERY_USER)) return;
  const found = users.find(name)?.name;
  const isAllowed = [usual, ...capability.users].some((allowed) => {
    return allowed === name || (found !== undefined && users.find(allowed)?.name === found);
  });
  if (!isAllowed) throw policyDenied(capability, "users", name, "it may not act as that user");
}
