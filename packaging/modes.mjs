import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Of all files in a folder, whatever the umask is. Programs and libraries are executable. */
export function setModes(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const executable = entry.isDirectory() || ["picod", "node"].includes(entry.name) || entry.parentPath.endsWith("/lib");
    chmodSync(join(entry.parentPath, entry.name), executable ? 0o755 : 0o644);
  }
  chmodSync(folder, 0o755);
}
