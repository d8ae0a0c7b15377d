import { closeSync } from "node:fs";
import type { InputWriter } from "../os/input-writer.js";
import { type OutOfMemoryCounter, offerWhenOutOfMemory } from "../os/out-of-memory.js";
import { OutputReader } from "../os/output-reader.js";
import type { ChildExit, Reaper } from "../os/reaper.js";
import { sendSignal, signalName } from "../os/spawn.js";
import { resizeTerminal, type TerminalSize } from "../os/terminal.js";
import type { Census } from "./census.js";
import type { ProcessSpec, StartedProgram } from "./start-program.js";
import { type DyingTree, type Grace, signalTree, type Termination, terminate } from "./termination.js";

export type StreamName = "stdout" | "stderr" | "pty";
export type EndReason = "exited" | "signaled" | "timed-out" | "cancelled" | "out-of-memory" | "spawn-failed";

export interface ProcessEnd {
  readonly reason: EndReason;
  /** As shells count: 128+n for signal n, 124 when timed out, 126 and 127 when it could not start. */
  readonly exitCode: number;
  /** Name of the signal that ended the leader. */
  readonly signal: string | undefined;
  readonly forced: boolean;
  readonly survivingProcesses: number;
  readonly durationMs: number;
  readonly usage: Pick<ChildExit, "userTimeMs" | "systemTimeMs" | "maxRssBytes">;
  /** One sentence for a person. */
  readonly message: string;
}

/** Takes the output of a process. */
export interface OutputSink {
  /** The chunk is valid for the call alone. */
  push(stream: StreamName, chunk: Uint8Array): void;
}

/** What all processes of a daemon share. */
export interface SharedParts {
  readonly reaper: Reaper;
  readonly outOfMemory: OutOfMemoryCounter;
  readonly census: Census;
  readonly devNull: number;
}

/** After the leader's exit its output is complete, but a pipeline of its may still be printing: so long it may pause… */
const DRAIN_QUIET_MS = 100;
/** …and so long it may go on, before a descendant that holds the pipe stops holding the answer. */
const DRAIN_MAX_MS = 500;
const MAX_TIMER_MS = 2 ** 31 - 1;
const EXIT_CODE_TIMED_OUT = 124;
const SIGKILL = 9;

/** One program from its start to its one end: running → (stopping →) ended. The first cause of ending wins. */
export class ManagedProcess implements DyingTree {
  readonly processId: string;
  /** The capability with which it was started. */
  readonly owner: string | undefined;
  readonly leaderPid: number;
  readonly hasTerminal: boolean;
  readonly input: InputWriter | undefined;
  /** Resolves once, when the leader has ended, its output is drained and a termination, if there was one, is over. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly #spec: ProcessSpec;
  readonly #shared: SharedParts;
  readonly #readers: ReadonlyMap<StreamName, OutputReader>;
  readonly #masterFd: number | undefined;
  readonly #slaveFd: number | undefined;
  readonly #startedAt = performance.now();
  readonly #timeout: NodeJS.Timeout | undefined;
  readonly #changeListeners = new Set<() => void>();
  readonly #resolveEnded: (end: ProcessEnd) => void;
  #exit: ChildExit | undefined;
  #endedAt = 0;
  #drainQuiet: NodeJS.Timeout | undefined;
  #drainLimit: NodeJS.Timeout | undefined;
  #drained = false;
  #awaitsOutputEnd: boolean;
  #hasEnded = false;
  #stopCause: "timed-out" | "cancelled" | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #killSent = false;
  #termination: Termination | undefined;

  /** To be made in the turn in which the program was started. */
  constructor(started: StartedProgram, spec: ProcessSpec, sink: OutputSink, shared: SharedParts) {
    this.#spec = spec;
    this.#shared = shared;
    this.processId = spec.id;
    this.owner = spec.capability?.name;
    this.#awaitsOutputEnd = spec.untilOutputEnds ?? false;
    this.hasTerminal = spec.io.kind === "terminal";
    this.leaderPid = started.pid;
    offerWhenOutOfMemory(started.pid);
    this.#masterFd = started.masterFd;
    this.#slaveFd = started.slaveFd;
    const { promise, resolve } = Promise.withResolvers<ProcessEnd>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    shared.reaper.onExit(started.pid, (exit) => this.#onExit(exit));
    const read = (stream: StreamName, fd: number): [StreamName, OutputReader] => {
      const onData = (chunk: Uint8Array) => {
        this.#drainQuiet?.refresh();
        sink.push(stream, chunk);
      };
      return [stream, new OutputReader(fd, stream === "pty" ? "terminal" : "pipe", { onData, onEnd: () => this.#onStreamEnd() })];
    };
    this.#readers = new Map(started.outputs.map(([stream, fd]) => read(stream, fd)));
    this.input = started.connectInput(this.#readers.get("pty"));
    const timeOut = () => this.stop("timed-out", spec.timeoutGrace);
    if (spec.timeoutMs > 0) this.#timeout = setTimeout(timeOut, Math.min(spec.timeoutMs, MAX_TIMER_MS));
  }

  /** It is being ended, or was. */
  get stopping(): boolean {
    return this.#stopCause !== undefined;
  }

  get census(): Census {
    return this.#shared.census;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Ends the whole tree: TERM, grace, KILL. When it is ending already, the shorter grace counts; without effect after its end. */
  stop(cause: "timed-out" | "cancelled", grace: Grace = this.#spec.killGraceMs): void {
    // Its end waits for what its leader has left behind, which is ended too.
    if (this.#awaitsOutputEnd && this.#exit !== undefined) void terminate(this, grace);
    this.endWithLeader();
    if (this.#stopCause !== undefined) this.#hurry(grace === "none" ? 0 : grace);
    if (this.#stopCause !== undefined || this.#exit !== undefined) return;
    this.#stopCause = cause;
    clearTimeout(this.#timeout);
    void terminate(this, grace).then(({ forced, survivingProcesses }) => {
      clearTimeout(this.#killTimer);
      this.#termination = { forced: forced || this.#killSent, survivingProcesses };
      if (this.#exit === undefined) this.#giveUp();
      else this.#finishIfComplete();
    });
  }

  #hurry(graceMs: number): void {
    if (this.#termination !== undefined) return;
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(() => {
      this.#killSent = true;
      void signalTree(this, ["SIGKILL"]);
    }, graceMs);
  }

  /** It is killed by a daemon that has no time left to wait for its end. */
  isKilled(): void {
    this.#stopCause ??= "cancelled";
    this.#termination ??= { forced: true, survivingProcesses: 0 };
  }

  /** From now on nobody who holds its output keeps it from ending. */
  endWithLeader(): void {
    if (!this.#awaitsOutputEnd) return;
    this.#awaitsOutputEnd = false;
    if (this.#exit !== undefined) this.#drain();
  }

  /** To the process group, or the leader alone. False when it is gone. */
  signal(number: number, leaderOnly: boolean): boolean {
    if (this.#exit !== undefined || !sendSignal(leaderOnly ? this.leaderPid : -this.leaderPid, number)) return false;
    if (number === SIGKILL) this.#killSent = true;
    return true;
  }

  /** False without a terminal, or when it is gone. */
  resize(size: TerminalSize): boolean {
    if (this.#masterFd === undefined || this.#readers.get("pty")?.ended !== false) return false;
    resizeTerminal(this.#masterFd, size);
    return true;
  }

  /** Lets the program wait, or go on, when it writes to that stream. What it has left behind at its end does not wait. */
  setPaused(stream: StreamName, paused: boolean): void {
    const reader = this.#readers.get(stream);
    if (reader === undefined || reader.paused === paused) return;
    if (this.#exit !== undefined && !this.#awaitsOutputEnd) return;
    if (paused) reader.pause();
    else reader.resume();
  }

  leaderIsReaped(): boolean {
    return this.#exit !== undefined;
  }

  onChange(listener: () => void): () => void {
    this.#changeListeners.add(listener);
    const stopOrphans = this.#shared.reaper.onOrphanExit(listener);
    return () => {
      this.#changeListeners.delete(listener);
      stopOrphans();
    };
  }

  #onExit(exit: ChildExit): void {
    // It was given up.
    if (this.#exit !== undefined) return;
    this.#exit = exit;
    this.#endedAt = performance.now();
    if (!this.#awaitsOutputEnd) clearTimeout(this.#timeout);
    if (this.#slaveFd !== undefined) closeSync(this.#slaveFd);
    this.#drain();
    for (const listener of [...this.#changeListeners]) listener();
    this.#finishIfComplete();
  }

  #drain(): void {
    if (this.#awaitsOutputEnd) return;
    for (const reader of this.#readers.values()) {
      reader.drainNow();
      reader.resume();
    }
    if (this.#drained) return;
    this.#drainQuiet = setTimeout(() => this.#stopDraining(), DRAIN_QUIET_MS);
    this.#drainLimit = setTimeout(() => this.#stopDraining(), DRAIN_MAX_MS);
  }

  #onStreamEnd(): void {
    if (![...this.#readers.values()].every((reader) => reader.ended)) return;
    this.#drained = true;
    this.#finishIfComplete();
  }

  /** Somebody else still holds the output. */
  #stopDraining(): void {
    this.#drained = true;
    for (const reader of this.#readers.values()) reader.discard();
    this.#finishIfComplete();
  }

  /** The leader cannot be killed (uninterruptible sleep, or not ours to signal): the answer says so instead of waiting for ever. */
  #giveUp(): void {
    this.#endedAt = performance.now();
    this.#exit = { exitCode: 128 + SIGKILL, signal: undefined, userTimeMs: 0, systemTimeMs: 0, maxRssBytes: 0 };
    this.#stopDraining();
  }

  /** Why it ended when the daemon did not end it. */
  #ownReason(exit: ChildExit): EndReason {
    if (exit.signal === undefined) return "exited";
    const byKernel = exit.signal === SIGKILL && !this.#killSent && this.#shared.outOfMemory.hasJustIncreased();
    return byKernel ? "out-of-memory" : "signaled";
  }

  #finishIfComplete(): void {
    const exit = this.#exit;
    if (exit === undefined || !this.#drained) return;
    if (this.#stopCause !== undefined && this.#termination === undefined) return;
    clearTimeout(this.#timeout);
    clearTimeout(this.#drainQuiet);
    clearTimeout(this.#drainLimit);
    this.#hasEnded = true;
    this.input?.destroy();
    const reason = this.#stopCause ?? this.#ownReason(exit);
    const signal = exit.signal === undefined ? undefined : signalName(exit.signal);
    this.#resolveEnded({
      reason,
      exitCode: reason === "timed-out" ? EXIT_CODE_TIMED_OUT : (exit.exitCode ?? 128 + (exit.signal ?? 0)),
      signal,
      forced: this.#termination?.forced ?? false,
      survivingProcesses: this.#termination?.survivingProcesses ?? 0,
      durationMs: this.#endedAt - this.#startedAt,
      usage: exit,
      message: describe(reason, signal, this.#spec.timeoutMs, this.#termination?.survivingProcesses ?? 0),
    });
  }
}

function describe(reason: EndReason, signal: string | undefined, timeoutMs: number, surviving: number): string {
  if (surviving > 0) return `${describe(reason, signal, timeoutMs, 0)}; ${surviving} of its processes could not be ended`;
  if (reason === "timed-out") return `timed out after ${timeoutMs / 1000} s`;
  if (reason === "out-of-memory") return "ended by the kernel: out of memory";
  if (reason === "signaled") return `ended by ${signal}`;
  return reason === "cancelled" ? "ended on request" : "";
}
