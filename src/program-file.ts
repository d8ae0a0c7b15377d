import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What loads the single file of a package, scripts/load.cjs, gives this to the daemon: it holds these files itself. */
declare const readPart: ((name: string) => Buffer) | undefined;

/** A file that the build lays beside the daemon. */
export function readProgramFile(name: string): Buffer {
  return typeof readPart === "function" ? readPart(name) : readFileSync(join(__dirname, name));
}
