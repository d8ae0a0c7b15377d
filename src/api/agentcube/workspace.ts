import { chownSync, mkdirSync } from "node:fs";
import { posix } from "node:path";
import { resolvePath, resolveUser, workingDirectory } from "../../acting-user.js";
import type { Caller } from "../../call.js";
import type { Config } from "../../config.js";
import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../../filesystem/access.js";
import { followLinks } from "../../filesystem/follow-links.js";
import { Root } from "../../os/root.js";
import type { Sandbox } from "../../sandbox.js";

/** The directory that AgentCube's routes are confined to. It is made when it is missing, and opened when it is first used. */
export class Workspace {
  readonly #sandbox: Pick<Sandbox, "users" | "defaults" | "grantedFiles">;
  readonly #config: Pick<Config, "workspace" | "root" | "workdir">;
  #root: Root | undefined;

  constructor(
    sandbox: Pick<Sandbox, "users" | "defaults" | "grantedFiles">,
    config: Pick<Config, "workspace" | "root" | "workdir">,
  ) {
    this.#sandbox = sandbox;
    this.#config = config;
  }

  /** On whose behalf, and where. @throws USER_NOT_FOUND, USER_NOT_PERMITTED, errno of mkdir(2), open(2). */
  access(caller: Caller | undefined): Access {
    const { users, defaults, grantedFiles } = this.#sandbox;
    const user = resolveUser(users, defaults.user);
    if (this.#root === undefined) {
      const { workspace, root, workdir } = this.#config;
      const directory = workspace ?? (root === "/" ? workingDirectory(user, workdir) : root);
      const isNew = mkdirSync(directory, { recursive: true }) !== undefined;
      if (isNew && process.getuid?.() === 0) chownSync(directory, user.uid, user.gid);
      this.#root = new Root(directory);
    }
    // Its paths are those of the workspace, in which the prefixes of a caller, paths of the whole root, have no name.
    if (caller === undefined || caller.pathPrefixes !== undefined) {
      throw new PicodError(
        "OUTSIDE_ROOT",
        `access denied: ${caller?.name ?? "the caller"} is confined to paths, and these routes are not`,
      );
    }
    const { capability } = caller;
    const rules = capability && grantedFiles.rulesFor(capability, user.home);
    return { root: rules === undefined ? this.#root : new Root(this.#root, undefined, rules), user, users };
  }

  /**
   * Which file a path means: absolute ones begin in the workspace too, and those that say where it really is as commands see it by way of a
   * link. @throws OUTSIDE_ROOT when `..` or a link leads out of it, INVALID_PATH.
   */
  resolve(access: Access, path: string): string {
    const clean = posix.normalize(path);
    const isBelow = clean !== ".." && !clean.startsWith("../");
    const absolute = resolvePath(clean.startsWith("/") ? clean : `/${clean}`, access.user, "/", access.users);
    const found = isBelow ? followLinks(access, absolute) : undefined;
    if (found !== undefined) return found;
    throw new PicodError("OUTSIDE_ROOT", `access denied: path '${path}' escapes workspace jail`, { path });
  }
}
