import { posix } from "node:path";
import { PicodError } from "./errors/picod-error.js";
import { canActAs } from "./os/credentials.js";
import { pathBytes } from "./os/path-bytes.js";
import type { User, UserDatabase } from "./os/users.js";
import type { Capability } from "./policy/capability.js";
import { permitUser } from "./policy/permit-user.js";
import { printable } from "./printable.js";

/** PATH_MAX of Linux, the final NUL not counted. */
const MAX_PATH_BYTES = 4095;

/** @throws USER_NOT_FOUND, USER_NOT_PERMITTED when the daemon is not root and that is not its own user. */
export function resolveUser(users: UserDatabase, nameOrUid: string): User {
  const user = users.find(nameOrUid);
  if (user === undefined)
    throw new PicodError("USER_NOT_FOUND", `no such user: ${printable(nameOrUid)}`, { user: printable(nameOrUid) });
  if (!canActAs(user)) {
    const message = `cannot act as user ${user.name}: the daemon runs as uid ${process.getuid?.()}, not as root`;
    throw new PicodError("USER_NOT_PERMITTED", message, { user: user.name });
  }
  return user;
}

/**
 * Whom a request acts as: the default user when it names none. @throws as `resolveUser`, POLICY_DENIED when its capability does not let it act as
 * that user.
 */
export function resolveActingUser(users: UserDatabase, name: string, usual: string, capability: Capability | undefined): User {
  permitUser(users, capability, name, usual);
  return resolveUser(users, name === "" ? usual : name);
}

/** Where relative paths of this user start. */
export function workingDirectory(user: User, workdir: string | undefined): string {
  return workdir === undefined ? user.home : posix.resolve(user.home, workdir);
}

/**
 * An absolute path: `~` and `~user` become home directories, relative paths start at `base`. Symbolic links and `..` are left
 * to the kernel. @throws INVALID_PATH for an empty path, a NUL byte or more than 4,095 bytes; USER_NOT_FOUND.
 */
export function resolvePath(path: string, user: User, base: string, users: UserDatabase): string {
  if (path === "") throw new PicodError("INVALID_PATH", "invalid path: it is empty");
  if (path.includes("\0")) throw new PicodError("INVALID_PATH", `invalid path: ${printable(path)}: it holds a NUL byte`);
  const expanded = path.startsWith("~") ? expandHome(path, user, users) : path;
  const absolute = expanded.startsWith("/") ? expanded : `${base.endsWith("/") ? base : `${base}/`}${expanded}`;
  const { length } = pathBytes(absolute);
  if (length > MAX_PATH_BYTES) {
    const message = `invalid path: ${printable(absolute)}: it is ${length} bytes long, more than ${MAX_PATH_BYTES}`;
    throw new PicodError("INVALID_PATH", message);
  }
  return absolute;
}

function expandHome(path: string, user: User, users: UserDatabase): string {
  const slash = path.indexOf("/");
  const name = path.slice(1, slash < 0 ? undefined : slash);
  const rest = slash < 0 ? "" : path.slice(slash);
  if (name === "") return user.home + rest;
  const named = users.find(name);
  // As in a shell, `~name` of nobody is a file of that name.
  return named === undefined ? path : named.home + rest;
}
