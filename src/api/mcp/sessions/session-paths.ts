import { posix } from "node:path";
import { workingDirectory } from "../../../acting-user.js";
import type { Caller } from "../../../call.js";
import type { Config } from "../../../config.js";
import { PicodError } from "../../../errors/picod-error.js";
import type { Access } from "../../../filesystem/access.js";
import { locateDirectory } from "../../../filesystem/locate-directory.js";
import { makeDirectory } from "../../../filesystem/make-directory.js";
import { Root } from "../../../os/root.js";
import { resolveAccess, resolveFilePath } from "../../../resolve-file.js";
import type { Sandbox } from "../../../sandbox.js";
import { BlockedPaths } from "../blocked-paths.js";
import type { SandboxSession, SessionPlace } from "./sandbox-session.js";
import { directoryNameOf } from "./session-key.js";

/** Below where callers work, unless `--session-dir` says where. */
const DEFAULT_BASE = ".sandbox-sessions";

/** A path that a tool was given, and who may open it. */
export interface NamedPath {
  readonly access: Access;
  /** For file operations. */
  readonly path: string;
  /** As commands see it, for answers. */
  readonly shown: string;
}

/** Makes the directory of a session, or finds it. @throws errno of mkdir(2), of what confines the caller. */
export function makeSessionDirectory(
  sandbox: Sandbox,
  config: Pick<Config, "sessionDir">,
  caller: Caller,
  sessionId: string,
): SessionPlace {
  const access = resolveAccess(sandbox, "", caller);
  const path = posix.join(baseFor(sandbox, config, caller, access), directoryNameOf(caller, sessionId));
  makeDirectory(access, path);
  const workdir = locateDirectory(access, path);
  return { directory: toInner(sandbox, workdir), workdir };
}

/** Where a caller's sessions are, as file operations have it. */
function baseFor(sandbox: Sandbox, { sessionDir }: Pick<Config, "sessionDir">, caller: Caller, { user }: Access): string {
  if (sessionDir !== undefined) return toInner(sandbox, sessionDir);
  const { root, defaults } = sandbox;
  const own = caller.capability?.shell?.workingDirectory ?? caller.pathPrefixes?.[0];
  return posix.join(own ?? (root.realPath === "/" ? workingDirectory(user, defaults.workdir) : "/"), DEFAULT_BASE);
}

/**
 * What a path means. A relative one is in the session's directory, which neither `..` nor a link leads out of: the kernel sees to that when
 * it is opened. An absolute one is whatever the caller may open of the root. @throws INVALID_PATH, OUTSIDE_ROOT.
 */
export function resolveSessionPath(
  sandbox: Sandbox,
  session: SandboxSession,
  caller: Caller | undefined,
  path: string,
): NamedPath {
  const access = resolveAccess(sandbox, "", caller);
  const isAbsolute = path.startsWith("/") || path.startsWith("~");
  const place = isAbsolute ? placeIfAny(session) : session.place;
  const { blocked } = session;
  const except = place?.workdir;
  const rules = new BlockedPaths({ blocked, home: access.user.home, granted: access.root.guard?.rules, except });
  const within = (prefixes: readonly string[] | undefined) => ({ ...access, root: new Root(access.root, prefixes, rules) });
  if (isAbsolute || place === undefined) {
    const absolute = resolveFilePath(sandbox, access, toInner(sandbox, path));
    const named = within(caller === undefined ? [] : caller.pathPrefixes);
    return { access: named, path: absolute, shown: toShown(sandbox, absolute) };
  }
  const { directory } = place;
  const asked = resolveFilePath(sandbox, access, path === "" ? path : `${directory}/${path}`);
  const normal = posix.normalize(path);
  if (normal === ".." || normal.startsWith("../") || !access.root.mayHold(directory)) throw outsideSession(path);
  return { access: within([directory]), path: asked, shown: toShown(sandbox, posix.join(directory, normal)) };
}

function placeIfAny(session: SandboxSession): SessionPlace | undefined {
  try {
    return session.place;
  } catch {
    return undefined;
  }
}

function outsideSession(path: string): PicodError {
  const message = `cannot open ${path}: a relative path is in the session's working directory; give an absolute one for elsewhere`;
  return new PicodError("OUTSIDE_ROOT", message, { path });
}

/** Commands see the root as a part of the whole tree, and so do those who read what they print. */
function toInner({ root }: Sandbox, path: string): string {
  const { realPath } = root;
  if (realPath === "/") return path;
  return path === realPath || path.startsWith(`${realPath}/`) ? path.slice(realPath.length) || "/" : path;
}

function toShown({ root }: Sandbox, path: string): string {
  return root.realPath === "/" ? posix.normalize(path) : posix.join(root.realPath, path);
}
