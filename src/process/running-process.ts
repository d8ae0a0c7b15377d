import { closeSync } from "node:fs";
import { closePipe, createPipe, type Pipe } from "../os/pipe.js";
import { PipeReader } from "../os/pipe-reader.js";
import { writeAndClose } from "../os/pipe-writer.js";
import type { ChildExit, Reaper } from "../os/reaper.js";
import { signalName, spawn } from "../os/spawn.js";
import type { User } from "../os/users.js";
import { type DyingTree, killNow, type Termination, terminate } from "./termination.js";

export type StreamName = "stdout" | "stderr";

/** Everything is resolved and checked: this starts as it is. */
export interface ProcessSpec {
  readonly id: string;
  readonly file: string;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
  /** Empty: /dev/null. */
  readonly stdin: Uint8Array;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly killGraceMs: number;
  readonly softOpenFiles: number;
  /** Gets all output, in chunks that are valid for the call alone. */
  readonly onOutput: (stream: StreamName, chunk: Uint8Array) => void;
}

export type EndReason = "exited" | "signaled" | "timed-out" | "cancelled";

export interface ProcessEnd {
  readonly reason: EndReason;
  /** As shells count: 128+n for signal n, 124 when timed out. */
  readonly exitCode: number;
  /** Name of the signal that ended the leader. */
  readonly signal: string | undefined;
  readonly forced: boolean;
  readonly survivingProcesses: number;
  readonly durationMs: number;
  readonly usage: Pick<ChildExit, "userTimeMs" | "systemTimeMs" | "maxRssBytes">;
}

/** After the leader's exit its output is complete, but a pipeline of its may still be printing: so long it may pause… */
const DRAIN_QUIET_MS = 100;
/** …and so long it may go on, before a descendant that holds the pipe stops holding the answer. */
const DRAIN_MAX_MS = 500;
const MAX_TIMER_MS = 2 ** 31 - 1;
const EXIT_CODE_TIMED_OUT = 124;

/** One command from its start to its one end: running → (stopping →) ended. The first cause of ending wins. */
export class RunningProcess implements DyingTree {
  readonly processId: string;
  readonly leaderPid: number;
  /** Resolves once, when the leader has ended, its output is drained and a termination, if there was one, is over. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly #spec: ProcessSpec;
  readonly #reaper: Reaper;
  readonly #readers: PipeReader[];
  readonly #startedAt = performance.now();
  readonly #timeout: NodeJS.Timeout | undefined;
  readonly #changeListeners = new Set<() => void>();
  readonly #resolveEnded: (end: ProcessEnd) => void;
  readonly #closeInput: (() => void) | undefined;
  #exit: ChildExit | undefined;
  #endedAt = 0;
  #drainQuiet: NodeJS.Timeout | undefined;
  #drainLimit: NodeJS.Timeout | undefined;
  #drained = false;
  #stopCause: "timed-out" | "cancelled" | undefined;
  #termination: Termination | undefined;

  /** Starts it. @throws the errno of execve(2), of changing directory, or of making pipes; then nothing is left behind. */
  constructor(spec: ProcessSpec, reaper: Reaper, devNull: number) {
    this.#spec = spec;
    this.#reaper = reaper;
    this.processId = spec.id;
    const started = start(spec, devNull);
    this.leaderPid = started.pid;
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    reaper.onExit(started.pid, (exit) => this.#onExit(exit));
    this.#readers = [
      new PipeReader(
        started.stdout,
        (chunk) => this.#onOutput("stdout", chunk),
        () => this.#onStreamEnd(),
      ),
      new PipeReader(
        started.stderr,
        (chunk) => this.#onOutput("stderr", chunk),
        () => this.#onStreamEnd(),
      ),
    ];
    this.#closeInput = started.stdin === undefined ? undefined : writeAndClose(started.stdin, spec.stdin);
    if (spec.timeoutMs > 0) this.#timeout = setTimeout(() => this.stop("timed-out"), Math.min(spec.timeoutMs, MAX_TIMER_MS));
  }

  /** Ends the whole tree: TERM, grace, KILL. Without effect when it is ending already, or has ended. */
  stop(cause: "timed-out" | "cancelled"): void {
    if (this.#stopCause !== undefined || this.#exit !== undefined) return;
    this.#stopCause = cause;
    clearTimeout(this.#timeout);
    void terminate(this, this.#spec.killGraceMs).then((termination) => {
      this.#termination = termination;
      this.#finishIfComplete();
    });
  }

  /** KILL at once, for a daemon that has no time left. */
  kill(): void {
    this.#stopCause ??= "cancelled";
    this.#termination ??= { forced: true, survivingProcesses: 0 };
    killNow(this);
  }

  leaderIsReaped(): boolean {
    return this.#exit !== undefined;
  }

  onChange(listener: () => void): () => void {
    this.#changeListeners.add(listener);
    const stopOrphans = this.#reaper.onOrphanExit(listener);
    return () => {
      this.#changeListeners.delete(listener);
      stopOrphans();
    };
  }

  #onOutput(stream: StreamName, chunk: Uint8Array): void {
    this.#spec.onOutput(stream, chunk);
    this.#drainQuiet?.refresh();
  }

  #onExit(exit: ChildExit): void {
    this.#exit = exit;
    this.#endedAt = performance.now();
    clearTimeout(this.#timeout);
    for (const reader of this.#readers) reader.drainNow();
    if (!this.#drained) {
      this.#drainQuiet = setTimeout(() => this.#stopDraining(), DRAIN_QUIET_MS);
      this.#drainLimit = setTimeout(() => this.#stopDraining(), DRAIN_MAX_MS);
    }
    for (const listener of [...this.#changeListeners]) listener();
    this.#finishIfComplete();
  }

  #onStreamEnd(): void {
    if (!this.#readers.every((reader) => reader.ended)) return;
    this.#drained = true;
    this.#finishIfComplete();
  }

  /** Somebody else still holds the output. */
  #stopDraining(): void {
    this.#drained = true;
    for (const reader of this.#readers) reader.discard();
    this.#finishIfComplete();
  }

  #finishIfComplete(): void {
    const exit = this.#exit;
    if (exit === undefined || !this.#drained) return;
    if (this.#stopCause !== undefined && this.#termination === undefined) return;
    clearTimeout(this.#drainQuiet);
    clearTimeout(this.#drainLimit);
    this.#closeInput?.();
    const reason = this.#stopCause ?? (exit.signal === undefined ? "exited" : "signaled");
    this.#resolveEnded({
      reason,
      exitCode: reason === "timed-out" ? EXIT_CODE_TIMED_OUT : (exit.exitCode ?? 128 + (exit.signal ?? 0)),
      signal: exit.signal === undefined ? undefined : signalName(exit.signal),
      forced: this.#termination?.forced ?? false,
      survivingProcesses: this.#termination?.survivingProcesses ?? 0,
      durationMs: this.#endedAt - this.#startedAt,
      usage: exit,
    });
  }
}

interface Started {
  readonly pid: number;
  /** The daemon's ends. */
  readonly stdin: number | undefined;
  readonly stdout: number;
  readonly stderr: number;
}

function start(spec: ProcessSpec, devNull: number): Started {
  const pipes: Pipe[] = [];
  try {
    const stdout = createPipe(spec.user);
    pipes.push(stdout);
    const stderr = createPipe(spec.user);
    pipes.push(stderr);
    const stdin = spec.stdin.length > 0 ? createPipe(spec.user) : undefined;
    if (stdin !== undefined) pipes.push(stdin);
    const pid = spawn({ ...spec, stdio: [stdin?.readFd ?? devNull, stdout.writeFd, stderr.writeFd] });
    closeSync(stdout.writeFd);
    closeSync(stderr.writeFd);
    if (stdin !== undefined) closeSync(stdin.readFd);
    return { pid, stdin: stdin?.writeFd, stdout: stdout.readFd, stderr: stderr.readFd };
  } catch (error) {
    for (const pipe of pipes) closePipe(pipe);
    throw error;
  }
}
