import { PicodError } from "../errors/picod-error.js";
import { describeErrno, errnoName } from "../os/system-error.js";
import type { ProcessEnd } from "./managed-process.js";

/** The end of a program that was never there: PATH has none of that name. */
export function programNotFound(name: string): ProcessEnd {
  return neverStarted(127, `program not found: ${name}`);
}

/**
 * The end of a program that could not be started, with the exit codes of shells: 127 not found, 126 found but not executable.
 * @throws INVALID_ARGUMENT, PROCESS_LIMIT_REACHED, or the error itself, when it is the caller's or the system's fault.
 */
export function explainSpawnError(error: unknown, file: string): ProcessEnd {
  const code = errnoName(error);
  if (code === "E2BIG") {
    throw new PicodError(
      "INVALID_ARGUMENT",
      "invalid command: arguments and environment exceed the system's limit (128 KiB for each)",
    );
  }
  if (code === "EAGAIN" || code === "ENOMEM") {
    throw new PicodError(
      "PROCESS_LIMIT_REACHED",
      `cannot start a process: ${describeErrno(error as Error)}`,
      {},
      { cause: error },
    );
  }
  if (code === undefined || (error as NodeJS.ErrnoException).syscall !== "spawn") throw error;
  return neverStarted(
    code === "ENOENT" || code === "ENOTDIR" ? 127 : 126,
    `cannot run ${file}: ${describeErrno(error as Error)}`,
  );
}

function neverStarted(exitCode: number, message: string): ProcessEnd {
  const usage = { userTimeMs: 0, systemTimeMs: 0, maxRssBytes: 0 };
  return {
    reason: "spawn-failed",
    exitCode,
    signal: undefined,
    forced: false,
    survivingProcesses: 0,
    durationMs: 0,
    usage,
    message,
  };
}
