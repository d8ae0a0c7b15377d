import { statSync } from "node:fs";
import { errnoName } from "./system-error.js";

/** Whether a path is a regular file that somebody may execute, as shells look for one in PATH. */
export function isProgram(path: string): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isFile() === true && (stats.mode & 0o111) !== 0;
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return false;
  }
}
