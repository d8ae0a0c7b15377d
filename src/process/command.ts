import { closeSync, constants, existsSync, openSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { withFileRightsOf } from "../os/credentials.js";
import { isProgram } from "../os/program.js";
import { O_PATH } from "../os/root.js";
import { errnoName } from "../os/system-error.js";
import type { User } from "../os/users.js";
import { printable } from "../printable.js";

/** What to run: a program with its arguments, a command line for the shell, or the shell itself, to be typed at. */
export type Command = { readonly argv: readonly string[] } | { readonly line: string | undefined; readonly login?: boolean };

/** setrlimit(2) values, soft and hard; undefined leaves one as it is. */
export interface ResourceLimits {
  readonly memoryBytes?: bigint | undefined;
  readonly cpuSeconds?: bigint | undefined;
  readonly processes?: bigint | undefined;
  readonly openFiles?: bigint | undefined;
  readonly fileSizeBytes?: bigint | undefined;
}

/** `/bin/bash` where there is one, else `/bin/sh`. Looked up each time: agents install shells. */
export function defaultShell(): string {
  return existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
}

/** The argument vector. @throws INVALID_ARGUMENT for an empty command or a NUL byte. */
export function argumentVector(command: Command, shell: string, limits: ResourceLimits): string[] {
  const argv = "argv" in command ? [...command.argv] : [shell, ...(command.login ? ["-l"] : []), ...lineArguments(command.line)];
  if (argv[0] === undefined || argv[0] === "" || ("line" in command && command.line === "")) {
    throw new PicodError("INVALID_ARGUMENT", "invalid command: it is empty");
  }
  const bad = argv.find((argument) => argument.includes("\0"));
  if (bad !== undefined) throw new PicodError("INVALID_ARGUMENT", `invalid command: ${printable(bad)}: it holds a NUL byte`);
  const prelude = limitsPrelude(limits);
  return prelude === "" ? argv : ["/bin/sh", "-c", `${prelude} exec "$@"`, "picod", ...argv];
}

const lineArguments = (line: string | undefined) => (line === undefined ? [] : ["-c", line]);

/**
 * Limits are set by a shell on the way to the program: posix_spawn(3) cannot, and setting them on the daemon for the moment of
 * a spawn would hit the daemon. POSIX units: KiB, seconds, blocks of 512 bytes.
 */
function limitsPrelude(limits: ResourceLimits): string {
  const set = (flag: string, value: bigint | undefined) => (value === undefined ? "" : `ulimit ${flag} ${value} || exit 126;`);
  return [
    set("-v", limits.memoryBytes === undefined ? undefined : limits.memoryBytes / 1024n),
    set("-t", limits.cpuSeconds),
    set("-n", limits.openFiles),
    set("-f", limits.fileSizeBytes === undefined ? undefined : (limits.fileSizeBytes + 511n) / 512n),
    // The letter for processes is not in POSIX: bash has -u, dash and busybox have -p.
    limits.processes === undefined
      ? ""
      : `ulimit -u ${limits.processes} 2>/dev/null || ulimit -p ${limits.processes} || exit 126;`,
  ].join("");
}

/** Looks a program up as a shell does. Undefined when no directory of `path` has it. */
export function findProgram(name: string, path: string, user: User): string | undefined {
  if (name.includes("/")) return name;
  const candidates = path.split(":").map((directory) => `${directory === "" ? "." : directory}/${name}`);
  return withFileRightsOf({ user }, () => candidates.find(isProgram));
}

/** @throws ENOENT, ENOTDIR, EACCES when that user cannot make it the working directory. */
export function assertWorkingDirectory(cwd: string, user: User): void {
  try {
    // The dot makes the kernel check the right to enter, not only to find.
    closeSync(withFileRightsOf({ user }, () => openSync(`${cwd}/.`, O_PATH | constants.O_DIRECTORY)));
  } catch (error) {
    if (errnoName(error) !== undefined) Object.assign(error as object, { syscall: "chdir", path: cwd });
    throw error;
  }
}

/** Whether that user can make it the working directory. */
export function canEnter(cwd: string, user: User): boolean {
  try {
    assertWorkingDirectory(cwd, user);
    return true;
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    return false;
  }
}
