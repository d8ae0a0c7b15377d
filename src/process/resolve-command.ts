import { resolveActingUser, resolvePath, workingDirectory } from "../acting-user.js";
import type { User, UserDatabase } from "../os/users.js";
import type { Capability } from "../policy/capability.js";
import type { Confinement, Spawner } from "../policy/confinement.js";
import { type Trace, toVariables } from "../trace.js";
import {
  argumentVector,
  assertWorkingDirectory,
  type Command,
  canEnter,
  defaultShell,
  findProgram,
  type ResourceLimits,
} from "./command.js";
import { buildEnvironment, type EnvironmentSources, PROCESS_ID_VARIABLE } from "./environment.js";
import { permitCommand, permitDirectory, permitEnvironment, permitLimits, workingDirectoryOf } from "./permit-command.js";

/** What the daemon's configuration decides about commands. */
export interface CommandDefaults {
  /** `--user`. */
  readonly user: string;
  readonly workdir: string | undefined;
  readonly shell: string | undefined;
  readonly environment: EnvironmentSources;
  readonly killGraceMs: number;
  readonly softOpenFiles: number;
  /** Starts commands of those who have a capability. */
  readonly confinement: Confinement;
}

/** What a request decides about its command. */
export interface CommandOptions {
  readonly command: Command;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Empty: the default user. */
  readonly user: string;
  readonly limits: ResourceLimits;
  /** What the command is a part of. */
  readonly trace: Trace;
  /** The caller's; undefined: no policy is in force. */
  readonly capability: Capability | undefined;
}

export interface ResolvedCommand {
  /** Undefined when no directory of PATH has the program. */
  readonly file: string | undefined;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
  readonly capability: Capability | undefined;
  /** Undefined: the daemon itself, without restrictions. */
  readonly spawner: Spawner | undefined;
}

/**
 * Completes a command from the request and the configuration, and checks what has a clearer error here than from execve(2).
 * @throws POLICY_DENIED for what the caller's capability does not grant.
 */
export function resolveCommand(
  users: UserDatabase,
  defaults: CommandDefaults,
  options: CommandOptions,
  processId: string,
  moreEnv: Readonly<Record<string, string>> = {},
): ResolvedCommand {
  const { capability } = options;
  if (capability !== undefined) permitEnvironment(capability, options.env);
  const user = resolveActingUser(users, options.user, defaults.user, capability);
  const shell = defaults.shell ?? defaultShell();
  const argv = argumentVector(options.command, shell, permitLimits(capability, options.limits));
  const workdir = (capability && workingDirectoryOf(capability, user.home)) ?? defaults.workdir;
  const base = workingDirectory(user, workdir);
  // As with sshd, a user whose home directory is missing starts in the root.
  const start = workdir !== undefined || canEnter(base, user) ? base : "/";
  const asked = options.cwd === "" ? start : resolvePath(options.cwd, user, base, users);
  if (asked !== start || workdir !== undefined) assertWorkingDirectory(asked, user);
  const cwd = capability === undefined ? asked : permitDirectory(capability, { path: asked, isAsked: options.cwd !== "" }, user);
  const env = { ...moreEnv, ...buildEnvironment(defaults.environment, user, shell, options.env) };
  for (const [name, value] of Object.entries(toVariables(options.trace.context))) env[name] ??= value;
  if (defaults.environment.bare) env.PWD = cwd;
  env[PROCESS_ID_VARIABLE] = processId;
  const { confinement } = defaults;
  if (capability !== undefined) permitCommand(capability, confinement, options.command, shell, env.PATH ?? "");
  const spawner = capability && confinement.spawner(capability, user.home);
  if (capability !== undefined) Object.assign(env, confinement.environment(capability, user.home));
  const file = findProgram(argv[0] ?? "", env.PATH ?? "", user);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return { file, argv, env: variables, cwd, user, capability, spawner };
}
