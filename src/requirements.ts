import { accessSync } from "node:fs";
import { ConfigError } from "./auth/token.js";
import { describeErrno } from "./os/system-error.js";

const REQUIRED = [
  ["/proc/self/stat", "processes cannot be followed without /proc; mount it: mount -t proc proc /proc"],
  ["/dev/null", "commands get it as their input; make it: mknod -m 666 /dev/null c 1 3"],
] as const;

/** What the daemon needs of every root. @throws ConfigError that names what is missing and how to provide it. */
export function assertRequirements(): void {
  for (const [path, remedy] of REQUIRED) {
    try {
      accessSync(path);
    } catch (error) {
      throw new ConfigError(`${path}: ${describeErrno(error as NodeJS.ErrnoException)}: ${remedy}`);
    }
  }
}
