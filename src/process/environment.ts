import { PicodError } from "../errors/picod-error.js";
import type { User } from "../os/users.js";

export const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Marks every descendant, so that those that left their group and session are still found. */
export const PROCESS_ID_VARIABLE = "PICOD_PROCESS_ID";

export interface EnvironmentSources {
  /** The daemon's own PATH: the image's. */
  readonly path: string | undefined;
  readonly lang: string | undefined;
  /** `--env`. */
  readonly defaults: Readonly<Record<string, string>>;
  /** No SHELL, LANG and TERM, and PWD last. */
  readonly bare?: boolean;
}

/**
 * The environment of a command, small and predictable: what a login gives, then the daemon's `--env`, then the request's. Nothing
 * else of the daemon's own environment gets in. @throws INVALID_ARGUMENT naming the variable.
 */
export function buildEnvironment(
  sources: EnvironmentSources,
  user: User,
  shell: string,
  requested: Readonly<Record<string, string>>,
): Record<string, string> {
  assertValid(requested);
  return {
    PATH: sources.path ?? DEFAULT_PATH,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    ...(sources.bare ? {} : { SHELL: shell, LANG: sources.lang ?? "C.UTF-8" }),
    ...sources.defaults,
    ...requested,
  };
}

function assertValid(env: Readonly<Record<string, string>>): void {
  const bad = Object.entries(env).find(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"));
  if (bad === undefined) return;
  const why = 'a name is not empty and has no "=", and nothing has a NUL byte';
  throw new PicodError("INVALID_ARGUMENT", `invalid env: ${JSON.stringify(bad[0])}: ${why}`);
}
