import { resolvePath, resolveUser, workingDirectory } from "../acting-user.js";
import { PicodError } from "../errors/picod-error.js";
import { describeErrno, errnoName } from "../os/system-error.js";
import type { User, UserDatabase } from "../os/users.js";
import {
  argumentVector,
  assertWorkingDirectory,
  type Command,
  defaultShell,
  findProgram,
  type ResourceLimits,
} from "./command.js";
import { buildEnvironment, type EnvironmentSources, PROCESS_ID_VARIABLE } from "./environment.js";
import { type CollectedOutput, OutputCollector } from "./output-collector.js";
import { newProcessId, type ProcessTable } from "./process-table.js";
import type { EndReason, ProcessEnd, RunningProcess } from "./running-process.js";

/** What the daemon's configuration decides about commands. */
export interface ExecuteDefaults {
  /** `--user`. */
  readonly user: string;
  readonly workdir: string | undefined;
  readonly shell: string | undefined;
  readonly environment: EnvironmentSources;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
  readonly softOpenFiles: number;
}

export interface ExecuteOptions {
  readonly command: Command;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Empty: the default user. */
  readonly user: string;
  readonly stdin: Uint8Array;
  /** 0: none; undefined: the default. */
  readonly timeoutMs: number | undefined;
  readonly maxOutputBytes: number | undefined;
  readonly limits: ResourceLimits;
  /** Empty: the daemon makes one. */
  readonly id: string;
  readonly traceparent: string | undefined;
}

export interface ExecuteResult {
  readonly processId: string;
  readonly stdout: CollectedOutput;
  readonly stderr: CollectedOutput;
  readonly end: Omit<ProcessEnd, "reason"> & { readonly reason: EndReason | "spawn-failed"; readonly message: string };
}

/**
 * Runs one command to its end. Aborting `abortSignal` ends the command's whole tree and rejects with the signal's reason at once.
 * @throws USER_NOT_FOUND, USER_NOT_PERMITTED, INVALID_ARGUMENT, PROCESS_LIMIT_REACHED, SHUTTING_DOWN, errno of the working
 * directory. A program that cannot be started is a result.
 */
export async function execute(
  processes: ProcessTable,
  users: UserDatabase,
  defaults: ExecuteDefaults,
  options: ExecuteOptions,
  abortSignal: AbortSignal | undefined,
): Promise<ExecuteResult> {
  abortSignal?.throwIfAborted();
  const limit = options.maxOutputBytes ?? defaults.maxOutputBytes;
  const output = { stdout: new OutputCollector(limit), stderr: new OutputCollector(limit) };
  const processId = options.id === "" ? newProcessId() : options.id;
  const resolved = resolveCommand(users, defaults, options, processId);
  const finish = (end: ExecuteResult["end"]) => ({
    processId,
    stdout: output.stdout.collect(),
    stderr: output.stderr.collect(),
    end,
  });
  if (resolved.file === undefined) return finish(spawnFailed(127, `program not found: ${resolved.argv[0]}`));

  let started: RunningProcess;
  try {
    started = processes.start({
      ...resolved,
      id: processId,
      file: resolved.file,
      stdin: options.stdin,
      timeoutMs: options.timeoutMs ?? defaults.timeoutMs,
      killGraceMs: defaults.killGraceMs,
      softOpenFiles: defaults.softOpenFiles,
      onOutput: (stream, chunk) => output[stream].push(chunk),
    });
  } catch (error) {
    return finish(explainSpawnError(error, resolved.file));
  }
  const end = await endOrAbort(started, abortSignal);
  return finish({ ...end, message: describeEnd(end, options.timeoutMs ?? defaults.timeoutMs) });
}

interface ResolvedCommand {
  readonly file: string | undefined;
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
}

function resolveCommand(
  users: UserDatabase,
  defaults: ExecuteDefaults,
  options: ExecuteOptions,
  processId: string,
): ResolvedCommand {
  const user = resolveUser(users, options.user === "" ? defaults.user : options.user);
  const shell = defaults.shell ?? defaultShell();
  const argv = argumentVector(options.command, shell, options.limits);
  const home = workingDirectory(user, defaults.workdir);
  const cwd = options.cwd === "" ? home : resolvePath(options.cwd, user, home, users);
  assertWorkingDirectory(cwd, user);
  const env = buildEnvironment(defaults.environment, user, shell, options.env);
  if (options.traceparent !== undefined) env.TRACEPARENT ??= options.traceparent;
  env[PROCESS_ID_VARIABLE] = processId;
  const file = findProgram(argv[0] ?? "", env.PATH ?? "", user);
  return { file, argv, env: Object.entries(env).map(([name, value]) => `${name}=${value}`), cwd, user };
}

/** Resolves with the end. When the caller gives up first, the tree is being ended and the caller's reason is thrown. */
function endOrAbort(started: RunningProcess, abortSignal: AbortSignal | undefined): Promise<ProcessEnd> {
  if (abortSignal === undefined) return started.ended;
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      started.stop("cancelled");
      reject(abortSignal.reason);
    };
    abortSignal.addEventListener("abort", onAbort, { once: true });
    void started.ended.then((end) => {
      abortSignal.removeEventListener("abort", onAbort);
      resolve(end);
    });
  });
}

/** The exit codes of shells: 127 not found, 126 found but not executable. What is the caller's or the system's fault is thrown. */
function explainSpawnError(error: unknown, file: string): ExecuteResult["end"] {
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
  if (code === undefined || code === "EMFILE" || code === "ENFILE" || code === "EPERM") throw error;
  return spawnFailed(code === "ENOENT" || code === "ENOTDIR" ? 127 : 126, `cannot run ${file}: ${describeErrno(error as Error)}`);
}

function spawnFailed(exitCode: number, message: string): ExecuteResult["end"] {
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

function describeEnd(end: ProcessEnd, timeoutMs: number): string {
  if (end.reason === "timed-out") return `timed out after ${timeoutMs / 1000} s`;
  if (end.reason === "signaled") return `ended by ${end.signal}`;
  return end.reason === "cancelled" ? "cancelled" : "";
}
