import type { Caller } from "../../call.js";
import { toConnectError } from "../../errors/to-connect-error.js";
import type { Sandbox } from "../../sandbox.js";
import { accessFor, type EnvdAccess } from "./access.js";
import { defaultUser } from "./acting-user.js";
import { resolveEnvdPath } from "./resolve-path.js";
import { RestError } from "./rest-errors.js";
import type { EnvdState } from "./state.js";

/** Whom a request of plain HTTP names; null is the default user. @throws 401. */
export function accessOf(sandbox: Sandbox, state: EnvdState, username: string | null, caller: Caller | undefined): EnvdAccess {
  if (username === null)
    return accessFor(
      sandbox,
      state,
      orUnauthorized(() => defaultUser(sandbox, state)),
      caller,
    );
  const named = sandbox.users.findNamed(username);
  if (named === undefined) throw new RestError(401, `error looking up user '${username}': user: unknown user ${username}`);
  return accessFor(sandbox, state, named, caller);
}

/** @throws 400. */
export function pathOf(access: EnvdAccess, state: EnvdState, path: string): string {
  try {
    return resolveEnvdPath(path, access.named, state);
  } catch (error) {
    throw new RestError(400, toConnectError(error, "").rawMessage);
  }
}

function orUnauthorized<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new RestError(401, toConnectError(error, "").rawMessage);
  }
}
