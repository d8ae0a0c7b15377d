import type { User } from "../os/users.js";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Marks every descendant, so that those that left their group and session are still found. */
export const PROCESS_ID_VARIABLE = "PICOD_PROCESS_ID";

export interface EnvironmentSources {
  /** The daemon's own PATH: the image's. */
  readonly path: string | undefined;
  readonly lang: string | undefined;
  /** `--env`. */
  readonly defaults: Readonly<Record<string, string>>;
}

/**
 * The environment of a command, small and predictable: what a login gives, then the daemon's `--env`, then the request's. Nothing
 * else of the daemon's own environment gets in.
 */
export function buildEnvironment(
  sources: EnvironmentSources,
  user: User,
  shell: string,
  requested: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    PATH: sources.path ?? DEFAULT_PATH,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: shell,
    LANG: sources.lang ?? "C.UTF-8",
    ...sources.defaults,
    ...requested,
  };
}
