import { resolveActingUser, resolvePath, workingDirectory } from "./acting-user.js";
import type { Caller } from "./call.js";
import type { Access } from "./filesystem/access.js";
import { Root } from "./os/root.js";
import type { Sandbox } from "./sandbox.js";

/**
 * What a caller's file operations see of the root: all of it, or what its path prefixes, and its capability, leave. Of a caller whom nobody
 * knows nothing is left. @param home what `~` of a policy stands for: that of whom the operations act as, never one that a caller chooses freely.
 */
export function rootFor({ root, grantedFiles }: Sandbox, caller: Caller | undefined, home: string): Root {
  const prefixes = caller === undefined ? [] : caller.pathPrefixes;
  const rules = caller?.capability && grantedFiles.rulesFor(caller.capability, home);
  return prefixes === undefined && rules === undefined ? root : new Root(root, prefixes, rules);
}

/** Whom a request acts as; the default user when it names none. @throws USER_NOT_FOUND, USER_NOT_PERMITTED, POLICY_DENIED. */
export function resolveAccess(sandbox: Sandbox, name: string, caller: Caller | undefined): Access {
  const { users, defaults } = sandbox;
  const user = resolveActingUser(users, name, defaults.user, caller?.capability);
  return { root: rootFor(sandbox, caller, user.home), user, users };
}

/** Which absolute path a request means. @throws INVALID_PATH, USER_NOT_FOUND. */
export function resolveFilePath({ users, defaults }: Sandbox, { user }: Access, path: string): string {
  return resolvePath(path, user, workingDirectory(user, defaults.workdir), users);
}

/** Both for a request that names one path. */
export function resolveFile(
  sandbox: Sandbox,
  request: { readonly user: string; readonly path: string },
  caller: Caller | undefined,
): [Access, string] {
  const access = resolveAccess(sandbox, request.user, caller);
  return [access, resolveFilePath(sandbox, access, request.path)];
}
