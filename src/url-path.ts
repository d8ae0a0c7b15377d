import { isUtf8 } from "node:buffer";
import { posix } from "node:path";
import type { Caller } from "./call.js";
import { PicodError } from "./errors/picod-error.js";
import type { Access } from "./filesystem/access.js";
import { followLinks } from "./filesystem/follow-links.js";
import { stat } from "./filesystem/stat.js";
import { decodePath } from "./os/path-bytes.js";
import { errnoName } from "./os/system-error.js";
import { resolveAccess, resolveFilePath } from "./resolve-file.js";
import type { Sandbox } from "./sandbox.js";

/** What a path outside the root is answered with; those who list for it look at code and message. */
const OUTSIDE = "path traversal outside sandbox root is forbidden";

/** A file that a request names. */
export interface NamedFile {
  readonly access: Access;
  readonly path: string;
  /** As the request has it: percent-decoded, nothing else done to it. */
  readonly asked: string;
  /** It is where paths begin: the root, or without one the working directory. */
  readonly isBase: boolean;
}

/**
 * What follows `/v1/files/`, decoded once: `+` is a plus sign, `%2F` a separator, and bytes that are not UTF-8 become characters as in
 * every path of PicoD. @throws INVALID_PATH when an escape is malformed.
 */
export function decodeUrlPath(text: string): string {
  if (/%(?![0-9a-f]{2})/i.test(text))
    throw new PicodError("INVALID_PATH", "invalid path: a percent sign without two hexadecimal digits");
  const bytes = Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    "latin1",
  );
  return isUtf8(bytes) ? bytes.toString("utf8") : decodePath(bytes);
}

/**
 * The one form of a decoded path: without `.`, `..`, double slashes and a slash at the end, which all mean what they mean in a URL. It is
 * absolute when it began with a slash; empty is where paths begin. A relative one may begin with `..`.
 */
export function cleanPath(decoded: string): string {
  const normal = posix.normalize(decoded);
  if (normal === "/") return normal;
  return normal.replace(/\/$/, "").replace(/^\.$/, "");
}

/**
 * Which file a request means, and as whom.
 *
 * With `--root` paths are those of the root, absolute ones too, and one that names the root itself, as commands see it, loses that beginning:
 * below the root /workspace, `a`, `%2Fa` and `%2Fworkspace%2Fa` are /workspace/a. Without it relative paths begin in the working directory
 * and absolute ones, `/v1/files//etc/hosts`, are just that. `~` is a name like any other.
 * @throws INVALID_PATH, OUTSIDE_ROOT, USER_NOT_FOUND, USER_NOT_PERMITTED.
 */
export function resolveUrlPath(sandbox: Sandbox, asked: string, user: string, caller: Caller | undefined): NamedFile {
  const access = resolveAccess(sandbox, user, caller);
  const path = cleanPath(asked);
  const { realPath } = sandbox.root;
  if (realPath === "/") {
    const named = path === "" || path.startsWith("~") ? `./${path}` : path;
    return { access, path: cleanPath(resolveFilePath(sandbox, access, named)), asked, isBase: path === "" };
  }
  if (path === ".." || path.startsWith("../")) throw new PicodError("OUTSIDE_ROOT", OUTSIDE, { path });
  const below = path === realPath || path.startsWith(`${realPath}/`) ? path.slice(realPath.length) : path;
  const absolute = below.startsWith("/") ? below : `/${below}`;
  return { access, path: resolveFilePath(sandbox, access, absolute), asked, isBase: absolute === "/" };
}

/**
 * The same file with the links on its way, or only those before its last name, followed as commands see them: to them the root is a part of
 * the whole tree, and they make links to `/workspace/a`. One that leads out of the root is what it would be if there were nothing else.
 * @throws OUTSIDE_ROOT when it would be nothing, errno of open(2).
 */
export function throughLinks(file: NamedFile, which: "all" | "before-last" = "all"): NamedFile {
  const { access } = file;
  const last = which === "all" ? "" : posix.basename(file.path);
  const path = which === "all" ? file.path : posix.dirname(file.path);
  const found = followLinks(access, path) ?? (exists(access, path) ? path : undefined);
  if (found === undefined) throw new PicodError("OUTSIDE_ROOT", OUTSIDE, { path });
  return { ...file, path: posix.join(found, last) };
}

function exists(access: Access, path: string): boolean {
  try {
    stat(access, path, true);
    return true;
  } catch (error) {
    if (errnoName(error) === "ENOENT") return false;
    throw error;
  }
}

/** The path of an absolute one on plain HTTP, without the `/v1/files/` before it. */
export function toUrlPath({ root }: Sandbox, path: string): string {
  const clean = cleanPath(path);
  // A slash that is not encoded may be merged with the one before it on the way.
  const beginning = root.realPath === "/" ? "%2F" : "";
  return beginning + clean.slice(1).split("/").map(encodeURIComponent).join("/");
}
