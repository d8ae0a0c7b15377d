import type { UserDatabase } from "../os/users.js";
import { ManagedProcess, type OutputSink, type ProcessEnd } from "./managed-process.js";
import { type CollectedOutput, OutputCollector } from "./output-collector.js";
import { permitTimeout } from "./permit-command.js";
import { newProcessId, type ProcessTable } from "./process-table.js";
import { type CommandDefaults, type CommandOptions, resolveCommand } from "./resolve-command.js";
import { explainSpawnError, programNotFound } from "./spawn-failure.js";
import { Spawning } from "./spawning.js";

export interface ExecuteDefaults extends CommandDefaults {
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
}

export interface ExecuteOptions extends CommandOptions {
  readonly stdin: Uint8Array;
  /** 0: none; undefined: the default. */
  readonly timeoutMs: number | undefined;
  readonly maxOutputBytes: number | undefined;
  /** Empty: the daemon makes one. */
  readonly id: string;
}

export interface ExecuteResult<Output = CollectedOutput> {
  readonly processId: string;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly end: ProcessEnd;
}

/** Sees a command while it runs. */
export interface ExecutionObserver extends OutputSink {
  onStarted(process: ManagedProcess): void;
}

/** Runs one command to its end, its output as text: see `runToEnd`. */
export async function execute(...parameters: Parameters<typeof runToEnd>): Promise<ExecuteResult> {
  const result = await runToEnd(...parameters);
  return { ...result, stdout: result.stdout.collect(), stderr: result.stderr.collect() };
}

/**
 * Runs one command to its end: start, collect, forget. Aborting `abortSignal` ends the command's whole tree and rejects with the
 * signal's reason at once.
 * @param observer sees the process, and its output as it comes.
 * @throws USER_NOT_FOUND, USER_NOT_PERMITTED, INVALID_ARGUMENT, PROCESS_LIMIT_REACHED, SHUTTING_DOWN, errno of the working
 * directory. A program that cannot be started is a result.
 */
export async function runToEnd(
  processes: ProcessTable,
  users: UserDatabase,
  defaults: ExecuteDefaults,
  options: ExecuteOptions,
  abortSignal: AbortSignal | undefined,
  observer?: ExecutionObserver,
): Promise<ExecuteResult<OutputCollector>> {
  abortSignal?.throwIfAborted();
  const limit = options.maxOutputBytes ?? defaults.maxOutputBytes;
  const output = { stdout: new OutputCollector(limit), stderr: new OutputCollector(limit) };
  const processId = options.id === "" ? newProcessId() : options.id;
  const sink: OutputSink = {
    push(stream, chunk) {
      if (stream !== "pty") output[stream].push(chunk);
      observer?.push(stream, chunk);
    },
  };
  const started = await launch(processes, users, defaults, options, processId, sink);
  if (started instanceof ManagedProcess) observer?.onStarted(started);
  const end = started instanceof ManagedProcess ? await endOrAbort(started, abortSignal) : started;
  processes.tellOmitted(output.stdout.droppedBytes + output.stderr.droppedBytes);
  return { processId, ...output, end };
}

/** The end at once when the program cannot be started. */
async function launch(
  processes: ProcessTable,
  users: UserDatabase,
  defaults: ExecuteDefaults,
  options: ExecuteOptions,
  processId: string,
  sink: OutputSink,
): Promise<ManagedProcess | ProcessEnd> {
  const timeoutMs = permitTimeout(options.capability, options.timeoutMs, defaults.timeoutMs);
  using spawning = new Spawning(options.trace, processId, processes);
  const resolved = spawning.resolve((trace) => resolveCommand(users, defaults, { ...options, trace }, processId));
  if (resolved.file === undefined) return spawning.failed(programNotFound(resolved.argv[0] ?? ""));
  try {
    const { killGraceMs, softOpenFiles } = defaults;
    const io = { kind: "pipes", input: options.stdin } as const;
    const spec = { ...resolved, id: processId, file: resolved.file, io, timeoutMs, killGraceMs, softOpenFiles };
    return spawning.started(await processes.startAmongOthers(spec, sink));
  } catch (error) {
    return spawning.failed(explainSpawnError(error, resolved.file));
  }
}

/** Resolves with the end. When the caller gives up first, the tree is being ended and the caller's reason is thrown. */
function endOrAbort(started: ManagedProcess, abortSignal: AbortSignal | undefined): Promise<ProcessEnd> {
  if (abortSignal === undefined) return started.ended;
  if (abortSignal.aborted) {
    started.stop("cancelled");
    return Promise.reject(abortSignal.reason);
  }
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
