import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { OutOfMemoryCounter } from "../os/out-of-memory.js";
import { Reaper } from "../os/reaper.js";
import { ManagedProcess, type OutputSink } from "./managed-process.js";
import type { ProcessSpec } from "./start-program.js";

/** All processes that this daemon has started and that have not ended. */
export class ProcessTable {
  readonly #maxProcesses: number;
  readonly #shared = { reaper: new Reaper(), outOfMemory: new OutOfMemoryCounter(), devNull: openSync("/dev/null", "r") };
  readonly #live = new Map<string, ManagedProcess>();
  #closed = false;

  constructor(maxProcesses: number) {
    this.#maxProcesses = maxProcesses;
  }

  get size(): number {
    return this.#live.size;
  }

  /** @throws PROCESS_LIMIT_REACHED, PROCESS_ID_CONFLICT, SHUTTING_DOWN, errno of the spawn. */
  start(spec: ProcessSpec, sink: OutputSink): ManagedProcess {
    if (this.#closed) throw new PicodError("SHUTTING_DOWN", "cannot start a process: the daemon is shutting down");
    if (this.#live.has(spec.id)) {
      throw new PicodError("PROCESS_ID_CONFLICT", `id ${spec.id} belongs to another process, which runs`, { id: spec.id });
    }
    if (this.#live.size >= this.#maxProcesses) {
      const message = `cannot start a process: ${this.#live.size} are running, the limit is ${this.#maxProcesses}`;
      throw new PicodError("PROCESS_LIMIT_REACHED", message, { limit: String(this.#maxProcesses) });
    }
    const started = new ManagedProcess(spec, sink, this.#shared);
    this.#live.set(spec.id, started);
    void started.ended.then(() => this.#live.delete(spec.id));
    return started;
  }

  find(id: string): ManagedProcess | undefined {
    return this.#live.get(id);
  }

  /** Ends all processes with TERM, grace and KILL, and starts no more. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    const live = [...this.#live.values()];
    for (const process of live) process.stop("cancelled");
    await Promise.all(live.map((process) => process.ended));
    this.#shared.reaper.close();
    this.#shared.outOfMemory.close();
    closeSync(this.#shared.devNull);
  }

  /** KILL for everything, at once. */
  killAll(): void {
    this.#closed = true;
    for (const process of this.#live.values()) process.kill();
  }
}

/** Ids of our own, never the pid: the kernel gives those out again. */
export function newProcessId(): string {
  return `proc_${randomBytes(12).toString("base64url")}`;
}
