import { randomUUID } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { PicodError } from "../errors/picod-error.js";
import { OutOfMemoryCounter } from "../os/out-of-memory.js";
import { Reaper } from "../os/reaper.js";
import type { Capability } from "../policy/capability.js";
import { TransientMap } from "../transient-map.js";
import { Census } from "./census.js";
import { ManagedProcess, type OutputSink, type ProcessEnd } from "./managed-process.js";
import { ProcessScope } from "./process-scope.js";
import { type ProcessSpec, type StartedProgram, startProgram, startProgramOffLoop } from "./start-program.js";
import { type Grace, killNow } from "./termination.js";

/** So many processes make a start worth its way over another thread. */
const CROWD = 2;

/** All processes that this daemon has started and that have not ended. */
export class ProcessTable {
  readonly #maxProcesses: number;
  readonly #shared = {
    reaper: new Reaper(),
    outOfMemory: new OutOfMemoryCounter(),
    census: new Census(),
    devNull: openSync("/dev/null", "r"),
  };
  readonly #live = new TransientMap<string, ManagedProcess>();
  /** On other threads. */
  readonly #starting = new TransientMap<string, Promise<unknown>>();
  readonly #scopes = new Set<ProcessScope>();
  readonly #endListeners: ((end: ProcessEnd) => void)[] = [];
  readonly #omittedListeners: ((bytes: number) => void)[] = [];
  #closed = false;
  #killed = false;

  constructor(maxProcesses: number) {
    this.#maxProcesses = maxProcesses;
  }

  get size(): number {
    return this.#live.size;
  }

  /** @throws PROCESS_LIMIT_REACHED, PROCESS_ID_CONFLICT, SHUTTING_DOWN, errno of the spawn. */
  start(spec: ProcessSpec, sink: OutputSink): ManagedProcess {
    this.#assertMayStart(spec);
    return this.#add(startProgram(spec, this.#shared.devNull), spec, sink);
  }

  /** The same, and where others run or start as well, without stopping the event loop for them. */
  async startAmongOthers(spec: ProcessSpec, sink: OutputSink): Promise<ManagedProcess> {
    this.#assertMayStart(spec);
    const { devNull, reaper } = this.#shared;
    // Alone, the way over another thread would only take longer.
    const isCrowd = this.#live.size + this.#starting.size >= CROWD;
    const program = isCrowd ? startProgramOffLoop(spec, devNull) : undefined;
    if (program === undefined) return this.#add(startProgram(spec, devNull), spec, sink);
    const starting = reaper.whileStarting(async () => this.#add(await program, spec, sink));
    this.#starting.set(spec.id, starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(spec.id);
    }
  }

  #assertMayStart({ id, capability }: ProcessSpec): void {
    if (this.#closed) throw new PicodError("SHUTTING_DOWN", "cannot start a process: the daemon is shutting down");
    if (this.#live.has(id) || this.#starting.has(id)) {
      throw new PicodError("PROCESS_ID_CONFLICT", `id ${id} belongs to another process, which runs`, { id });
    }
    const count = this.#live.size + this.#starting.size;
    if (count >= this.#maxProcesses) {
      const message = `cannot start a process: ${count} are running, the limit is ${this.#maxProcesses}`;
      throw new PicodError("PROCESS_LIMIT_REACHED", message, { limit: String(this.#maxProcesses) });
    }
    if (capability?.limits.maxProcesses !== undefined) this.#assertWithin(capability, capability.limits.maxProcesses);
  }

  /** None of them is on another thread while it starts: the confined ones never are. */
  #assertWithin({ name }: Capability, limit: number): void {
    const count = this.#live.values().filter(({ owner }) => owner === name).length;
    if (count < limit) return;
    const message = `cannot start a process: ${count} of capability ${name} are running, its limits.max_processes is ${limit}`;
    const metadata = { capability: name, limit: "max_processes", value: String(limit) };
    throw new PicodError("POLICY_LIMIT_REACHED", message, metadata);
  }

  #add(started: StartedProgram, spec: ProcessSpec, sink: OutputSink): ManagedProcess {
    const process = new ManagedProcess(started, spec, sink, this.#shared);
    this.#live.set(spec.id, process);
    this.#shared.outOfMemory.watchWhile(() => this.#live.size > 0);
    void process.ended.then((end) => {
      this.#live.delete(spec.id);
      this.tellEnd(end);
    });
    // It was on its way when all were ended.
    if (this.#killed) killOff([process]);
    else if (this.#closed) process.stop("cancelled");
    return process;
  }

  /** One that lives; whoever sees it in the system may ask for it while its start is still on its way here. */
  async find(id: string): Promise<ManagedProcess | undefined> {
    await this.#starting.get(id)?.catch(() => undefined);
    return this.#live.get(id);
  }

  /** For processes that end together: to be closed with `closeScope`. */
  openScope(grace: Grace): ProcessScope {
    const scope = new ProcessScope(grace);
    this.#scopes.add(scope);
    return scope;
  }

  /** Resolves with how many processes could not be ended. */
  async closeScope(scope: ProcessScope): Promise<number> {
    try {
      return await scope.close();
    } finally {
      this.#scopes.delete(scope);
    }
  }

  /** Calls back with the end of every process, also of one that could not be started. */
  onEnd(listener: (end: ProcessEnd) => void): void {
    this.#endListeners.push(listener);
  }

  tellEnd(end: ProcessEnd): void {
    for (const listener of this.#endListeners) listener(end);
  }

  /** Calls back with what was left out of the output of a command that has run to its end. */
  onOmitted(listener: (bytes: number) => void): void {
    this.#omittedListeners.push(listener);
  }

  tellOmitted(bytes: number): void {
    if (bytes > 0) for (const listener of this.#omittedListeners) listener(bytes);
  }

  /**
   * Ends all processes with TERM, grace and KILL, and starts no more; of scopes also what was left in the background. Resolves when they have
   * ended.
   */
  async close(): Promise<void> {
    this.#closed = true;
    for (const process of this.#live.values()) process.stop("cancelled");
    const scopes = [...this.#scopes].map((scope) => this.closeScope(scope));
    await Promise.allSettled(this.#starting.values());
    await Promise.all(this.#live.values().map((process) => process.ended));
    await Promise.all(scopes);
    this.#shared.reaper.close();
    this.#shared.outOfMemory.close();
    closeSync(this.#shared.devNull);
  }

  /** KILL for everything, at once. */
  killAll(): void {
    this.#closed = true;
    this.#killed = true;
    const scoped = [...this.#scopes].flatMap((scope) => [...scope.processes]);
    killOff([...new Set([...this.#live.values(), ...scoped])]);
  }
}

function killOff(processes: readonly ManagedProcess[]): void {
  for (const process of processes) process.isKilled();
  killNow(processes);
}

/** Ids of our own, never the pid: the kernel gives those out again. */
export function newProcessId(): string {
  return `proc_${randomUUID().replaceAll("-", "")}`;
}
