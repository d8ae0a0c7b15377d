import { resolvePath, resolveUser, workingDirectory } from "./acting-user.js";
import type { Caller } from "./call.js";
import type { Access } from "./filesystem/access.js";
import { Root } from "./os/root.js";
import type { Sandbox } from "./sandbox.js";

/** What a caller's file operations see of the root: all of it, or what its path prefixes leave. Of a caller whom nobody knows nothing is left. */
export function rootFor(root: Root, caller: Caller | undefined): Root {
  const prefixes = caller === undefined ? [] : caller.pathPrefixes;
  return prefixes === undefined ? root : new Root(root, prefixes);
}

/** Whom a request acts as; the default user when it names none. @throws USER_NOT_FOUND, USER_NOT_PERMITTED. */
export function resolveAccess({ users, root, defaults }: Sandbox, user: string, caller: Caller | undefined): Access {
  return { root: rootFor(root, caller), user: resolveUser(users, user === "" ? defaults.user : user), users };
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
