import { posix } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import type { User } from "../../os/users.js";
import type { EnvdState } from "./state.js";

/** PATH_MAX of Linux, the final NUL not counted. */
const MAX_PATH_BYTES = 4095;

/**
 * An absolute path. An empty one is the default working directory, and relative ones, that directory's too, start in the user's
 * home; absolute ones stay as they are. @throws invalid_argument for `~name`, internal for what no path can be.
 */
export function resolveEnvdPath(path: string, user: User, { defaultWorkdir }: EnvdState): string {
  const given = path === "" ? (defaultWorkdir ?? "") : path;
  const absolute = given.startsWith("~") ? expandHome(given, user) : given.startsWith("/") ? given : joined(user.home, given);
  if (absolute.includes("\0")) throw new ConnectError("invalid path: it holds a NUL byte", Code.Internal);
  if (Buffer.byteLength(absolute) > MAX_PATH_BYTES) throw new ConnectError("invalid path: file name too long", Code.Internal);
  return absolute;
}

function expandHome(path: string, user: User): string {
  const rest = path.slice(1);
  if (rest === "" || rest.startsWith("/") || rest.startsWith("\\")) return joined(user.home, rest);
  throw new ConnectError("failed to expand path: cannot expand user-specific home dir", Code.InvalidArgument);
}

/** Without a slash at the end. */
function joined(home: string, path: string): string {
  const normalized = posix.join(home, path);
  return normalized.length > 1 && normalized.endsWith("/") ? normalized.slice(0, -1) : normalized;
}
