import { closeSync, constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { withFileRightsOf } from "../os/credentials.js";
import { O_PATH, readLinkIn } from "../os/root.js";
import { errnoName, systemError } from "../os/system-error.js";
import type { Access } from "./access.js";
import { assertMayFollow } from "./writing/write-target.js";

/** MAXSYMLINKS of Linux. */
const MAX_LINKS = 40;

/**
 * The path without symbolic links that an absolute one of the root means to whoever sees the root as a part of the whole tree: a link to
 * `/workspace/a` leads into the root `/workspace`. Undefined when a link leads out of it. What does not exist is kept as it is, and so is every
 * path when the root is all there is. It answers a question and protects nothing: that is left to the kernel, when the path is opened.
 * @throws ELOOP, errno of open(2).
 */
export function followLinks(access: Access, path: string): string | undefined {
  const { realPath } = access.root;
  if (realPath === "/") return path;
  let links = 0;
  let ahead = path.split("/");
  let reached: string[] = [];
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      if (reached.length === 0) return undefined;
      reached.pop();
      continue;
    }
    const target = linkTarget(access, `/${[...reached, name].join("/")}`);
    if (target === undefined) {
      reached.push(name);
      continue;
    }
    if (++links > MAX_LINKS) throw systemError("open", path, osConstants.errno.ELOOP);
    // The kernel asks so of the last link alone.
    if (!ahead.some((each) => each !== "" && each !== ".")) {
      withFileRightsOf(access, () => assertMayFollow(access, `/${[...reached, name].join("/")}`));
    }
    if (target.startsWith("/")) {
      if (target !== realPath && !target.startsWith(`${realPath}/`)) return undefined;
      reached = [];
    }
    ahead = [...target.slice(target.startsWith("/") ? realPath.length : 0).split("/"), ...ahead];
  }
  return `/${reached.join("/")}`;
}

function linkTarget({ root, user }: Access, path: string): string | undefined {
  let fd: number | undefined;
  try {
    return withFileRightsOf({ root, user }, () => {
      fd = root.open(path, O_PATH | constants.O_NOFOLLOW, 0, "resolve");
      return fstatSync(fd).isSymbolicLink() ? readLinkIn(fd, "") : undefined;
    });
  } catch (error) {
    if (errnoName(error) === "ENOENT" || errnoName(error) === "ENOTDIR") return undefined;
    throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
