import { Code, ConnectError } from "@connectrpc/connect";
import { resolveUser } from "../../acting-user.js";
import type { User } from "../../os/users.js";
import type { Sandbox } from "../../sandbox.js";
import type { EnvdState } from "./state.js";

const CUSTOMARY_USER = "user";

/** Whom an RPC acts as: the name in `Authorization: Basic`, else the default user. @throws unauthenticated for an unknown name. */
export function actingUser(sandbox: Sandbox, state: EnvdState, header: Headers): User {
  const named = basicUserName(header.get("authorization") ?? "");
  return named === undefined ? defaultUser(sandbox, state) : findUser(sandbox, named, "invalid username");
}

/** For calls that act as nobody: a wrong name is refused all the same. @throws unauthenticated. */
export function assertKnownUser(sandbox: Sandbox, header: Headers): void {
  const named = basicUserName(header.get("authorization") ?? "");
  if (named !== undefined) findUser(sandbox, named, "invalid username");
}

/** @throws unauthenticated when that account is gone. */
export function defaultUser(sandbox: Sandbox, state: EnvdState): User {
  if (state.defaultUser !== undefined) return findUser(sandbox, state.defaultUser, "invalid default user");
  return resolveUser(sandbox.users, configuredUser(sandbox, state));
}

/** The default user, by name, as whoever runs the daemon has it: whatever `/init` has set. */
export function configuredUser({ users, defaults }: Sandbox, { configuredUser: configured }: EnvdState): string {
  return configured ?? (users.findNamed(CUSTOMARY_USER) === undefined ? defaults.user : CUSTOMARY_USER);
}

/** The name of `Basic base64("name:password")`; undefined for what is no such header. */
export function basicUserName(authorization: string): string | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? [];
  const decoded = Buffer.from(encoded ?? "", "base64").toString();
  const colon = decoded.indexOf(":");
  return colon < 0 ? undefined : decoded.slice(0, colon);
}

function findUser({ users }: Sandbox, name: string, what: string): User {
  if (users.findNamed(name) === undefined) throw new ConnectError(`${what}: '${name}'`, Code.Unauthenticated);
  return resolveUser(users, name);
}
