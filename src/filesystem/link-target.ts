import { closeSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { O_PATH } from "../os/root.js";
import { errnoName } from "../os/system-error.js";
import type { Access } from "./access.js";
import type { EntryInfo } from "./entry-info.js";
import { stat } from "./stat.js";

/** What a symbolic link leads to in the end, with its xattrs, under its own path; undefined when that is nothing, a circle, or denied. */
export function linkTarget(access: Access, path: string): EntryInfo | undefined {
  let fd: number | undefined;
  try {
    fd = withFileRightsOf(access, () => access.root.open(path, O_PATH));
    return stat(access, access.root.pathOf(fd), false, true);
  } catch (error) {
    // What may not be looked at is nothing.
    if (errnoName(error) === undefined && !(error instanceof PicodError)) throw error;
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
