import { accessSync, constants, mkdirSync } from "node:fs";
import { resolveUser } from "../acting-user.js";
import { type Config, invalidValue } from "../config.js";
import { describeErrno } from "../os/system-error.js";
import type { Confinement } from "../policy/confinement.js";
import { createSandbox, type Sandbox } from "../sandbox.js";

/** @throws ConfigError for what would make every call fail: a root, user or shell that does not exist. */
export function createConfiguredSandbox(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  confinement: Confinement,
): Sandbox {
  const { root, shell, user, envdUser } = config;
  try {
    if (config.sandboxd) mkdirSync(root, { recursive: true });
    if (root !== "/") accessSync(`${root}/.`);
  } catch (error) {
    throw invalidValue("root", `${root}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
  try {
    if (shell !== undefined) accessSync(shell, constants.X_OK);
  } catch (error) {
    throw invalidValue("shell", `${shell}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
  const sandbox = createSandbox(config, env, confinement);
  try {
    if (user !== undefined) resolveUser(sandbox.users, user);
  } catch (error) {
    throw invalidValue("user", (error as Error).message);
  }
  try {
    if (envdUser !== undefined && !config.noEnvd) resolveUser(sandbox.users, envdUser);
  } catch (error) {
    throw invalidValue("envdUser", (error as Error).message);
  }
  return sandbox;
}
