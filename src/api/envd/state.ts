import type { Caller } from "../../call.js";

/** What envd says where there is no Firecracker. */
export const E2B_SANDBOX = "false";

/** What the façade of E2B's envd is told by `/init` and applies from then on. */
export class EnvdState {
  /** By name, and `--envd-user` at first. Undefined: `user` when there is such an account, else the daemon's default user. */
  defaultUser: string | undefined;
  /** What it was before anybody called `/init`. */
  readonly configuredUser: string | undefined;
  /** Where relative paths and commands start; undefined: the home directory. */
  defaultWorkdir: string | undefined;
  /** Replaced as a whole. */
  envVars: Readonly<Record<string, string>> = {};
  /** Undefined: no token of E2B's kind is asked for. */
  accessToken: string | undefined;
  /** Who has set it: it opens no more than this one may. */
  tokenSetBy: Caller | undefined;

  constructor(defaultUser: string | undefined) {
    this.defaultUser = defaultUser;
    this.configuredUser = defaultUser;
  }

  /** For every command; a request's own come after it. What says where it runs is not for `/init` to change. */
  get environment(): Record<string, string> {
    return { ...this.envVars, E2B_SANDBOX };
  }
}
