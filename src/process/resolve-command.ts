import { resolvePath, resolveUser, workingDirectory } from "../acting-user.js";
import type { User, UserDatabase } from "../os/users.js";
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

/** What the daemon's configuration decides about commands. */
export interface CommandDefaults {
  /** `--user`. */
  readonly user: string;
  readonly workdir: string | undefined;
  readonly shell: string | undefined;
  readonly environment: EnvironmentSources;
  readonly killGraceMs: number;
  readonly softOpenFiles: number;
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
}

export interface ResolvedCommand {
  /** Undefined when no directory of PATH has the program. */
  readonly file: string | undefined;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
}

/** Completes a command from the request and the configuration, and checks what has a clearer error here than from execve(2). */
export function resolveCommand(
  users: UserDatabase,
  defaults: CommandDefaults,
  options: CommandOptions,
  processId: string,
  moreEnv: Readonly<Record<string, string>> = {},
): ResolvedCommand {
  const user = resolveUser(users, options.user === "" ? defaults.user : options.user);
  const shell = defaults.shell ?? defaultShell();
  const argv = argumentVector(options.command, shell, options.limits);
  const base = workingDirectory(user, defaults.workdir);
  // As with sshd, a user whose home directory is missing starts in the root.
  const start = defaults.workdir !== undefined || canEnter(base, user) ? base : "/";
  const cwd = options.cwd === "" ? start : resolvePath(options.cwd, user, base, users);
  if (cwd !== start || defaults.workdir !== undefined) assertWorkingDirectory(cwd, user);
  const env = { ...moreEnv, ...buildEnvironment(defaults.environment, user, shell, options.env) };
  for (const [name, value] of Object.entries(toVariables(options.trace.context))) env[name] ??= value;
  if (defaults.environment.bare) env.PWD = cwd;
  env[PROCESS_ID_VARIABLE] = processId;
  const file = findProgram(argv[0] ?? "", env.PATH ?? "", user);
  return { file, argv, env: Object.entries(env).map(([name, value]) => `${name}=${value}`), cwd, user };
}
