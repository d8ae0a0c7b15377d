import { Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import type { ProcessConfig, PTY, StartRequest } from "../../gen/envd/process/process_pb.js";
import { errnoName } from "../../os/system-error.js";
import type { TerminalSize } from "../../os/terminal.js";
import type { User } from "../../os/users.js";
import type { Capability } from "../../policy/capability.js";
import type { ProcessRecord } from "../../process/process-record.js";
import { start } from "../../process/start.js";
import type { Sandbox } from "../../sandbox.js";
import type { Trace } from "../../trace.js";
import { configuredUser } from "./acting-user.js";
import { resolveEnvdPath } from "./resolve-path.js";
import { E2B_SANDBOX, type EnvdState } from "./state.js";

/** A program that cannot be started looks like one that ended at once, as with a shell. */
const TELL_FAILURE = ["/bin/sh", "-c", 'printf "%s\\n" "$1" >&2; exit "$2"', "sh"];
const NOT_FOUND = "127";

/** Starts what a request asks for. @param timeoutMs 0: none. @throws invalid_argument for a cwd that the user cannot enter. */
export function startProcess(
  sandbox: Sandbox,
  state: EnvdState,
  user: User,
  { process, pty, tag = "", stdin = true }: StartRequest,
  timeoutMs: number,
  trace: Trace,
  capability: Capability | undefined,
): ProcessRecord {
  const { cmd = "", args = [], envs = {}, cwd = "" } = process ?? ({} as Partial<ProcessConfig>);
  const { environment } = sandbox.defaults;
  const variables = { ...environment.defaults, ...(capability === undefined ? state.environment : { E2B_SANDBOX }) };
  const defaults = {
    ...sandbox.defaults,
    user: configuredUser(sandbox, state),
    environment: { ...environment, bare: true, defaults: variables },
  };
  const names = { id: "", tag: "", label: tag, sessionId: "" };
  const ending = { timeoutMs, timeoutGrace: "none", untilOutputEnds: true } as const;
  // Where a capability has commands start is not the user's home directory.
  const isConfined = cwd === "" && capability !== undefined && state.defaultWorkdir === undefined;
  const asked = {
    command: "",
    cwd: isConfined ? "" : resolveEnvdPath(cwd, user, state),
    user: user.name,
    // Whoever may call /init may not decide what others are confined to.
    env: capability === undefined ? envs : { ...state.envVars, ...envs },
    size: pty && toSize(pty),
    stdin,
  };
  const run = (argv: readonly string[]) =>
    start({ ...sandbox, defaults }, { ...asked, ...names, ...ending, argv, login: false, limits: {}, trace, capability });
  try {
    const record = run(cmd === "" ? [...TELL_FAILURE, "'': No such file or directory", NOT_FOUND] : [cmd, ...args]);
    const { end } = record;
    if (end?.reason !== "spawn-failed") return record;
    sandbox.registry.delete(record);
    return run([...TELL_FAILURE, describe(cmd, end.exitCode), String(end.exitCode)]);
  } catch (error) {
    throw explainCwd(error, asked.cwd);
  }
}

/** Cut to 16 bits, as terminals have them. */
export function toSize({ size }: PTY): TerminalSize {
  return { cols: (size?.cols ?? 0) & 0xffff, rows: (size?.rows ?? 0) & 0xffff };
}

function describe(cmd: string, exitCode: number): string {
  return `'${cmd}': ${exitCode === Number(NOT_FOUND) ? "No such file or directory" : "Permission denied"}`;
}

function explainCwd(error: unknown, cwd: string): unknown {
  if (error instanceof PicodError || (error as NodeJS.ErrnoException).syscall !== "chdir") return error;
  const errno = errnoName(error);
  const why = errno === "ENOENT" ? "does not exist" : errno === "ENOTDIR" ? "is not a directory" : "cannot be entered";
  return new ConnectError(`cwd '${cwd}' ${why}`, Code.InvalidArgument, undefined, undefined, error);
}
