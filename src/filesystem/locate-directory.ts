import { closeSync, constants } from "node:fs";
import { withFileRightsOf } from "../os/credentials.js";
import { O_PATH, realPathOf } from "../os/root.js";
import type { Access } from "./access.js";

/** Where commands, which no root confines, find a directory. @throws errno of open(2), ENOTDIR. */
export function locateDirectory(access: Access, path: string): string {
  const fd = withFileRightsOf(access.user, () => access.root.open(path, O_PATH | constants.O_DIRECTORY));
  try {
    return realPathOf(fd);
  } finally {
    closeSync(fd);
  }
}
