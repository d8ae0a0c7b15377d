import { resolvePath, resolveUser, workingDirectory } from "./acting-user.js";
import type { Access } from "./filesystem/access.js";
import type { Sandbox } from "./sandbox.js";

/** Whom a request acts as; the default user when it names none. @throws USER_NOT_FOUND, USER_NOT_PERMITTED. */
export function resolveAccess({ users, root, defaults }: Sandbox, user: string): Access {
  return { root, user: resolveUser(users, user === "" ? defaults.user : user), users };
}

/** Which absolute path a request means. @throws INVALID_PATH, USER_NOT_FOUND. */
export function resolveFilePath({ users, defaults }: Sandbox, { user }: Access, path: string): string {
  return resolvePath(path, user, workingDirectory(user, defaults.workdir), users);
}

/** Both for a request that names one path. */
export function resolveFile(sandbox: Sandbox, request: { readonly user: string; readonly path: string }): [Access, string] {
  const access = resolveAccess(sandbox, request.user);
  return [access, resolveFilePath(sandbox, access, request.path)];
}
