import { closeSync, constants } from "node:fs";
import { withFileRightsOf } from "../os/credentials.js";
import { realPathOf } from "../os/real-path.js";
import { O_PATH } from "../os/root.js";
import type { Access } from "./access.js";

/** Where commands, which no root confines, find a directory. @throws errno of open(2), ENOTDIR. */
export function locateDirectory(access: Access, path: string): string {
  const fd = withFileRightsOf(access, () => access.root.open(path, O_PATH | constants.O_DIRECTORY));
  try {
    return realPathOf(fd);
  } finally {
    closeSync(fd);
  }
}
