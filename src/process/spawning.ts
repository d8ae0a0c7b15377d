import { posix } from "node:path";
import { PicodError } from "../errors/picod-error.js";
import { errnoName } from "../os/system-error.js";
import type { Span, Trace } from "../trace.js";
import type { ManagedProcess, ProcessEnd } from "./managed-process.js";
import type { ProcessTable } from "./process-table.js";
import type { ResolvedCommand } from "./resolve-command.js";

/** The start of one program as a step of a trace. The program continues the trace from here. Use with `using`. */
export class Spawning implements Disposable {
  readonly #span: Span;
  readonly #processes: ProcessTable;

  constructor(trace: Trace, processId: string, processes: ProcessTable) {
    this.#processes = processes;
    this.#span = trace.begin("spawn", { "picod.process.id": processId });
  }

  /** @throws what `resolve` throws. */
  resolve(resolve: (trace: Trace) => ResolvedCommand): ResolvedCommand {
    const span = this.#span;
    try {
      const resolved = resolve(span);
      const { argv, file = argv[0] ?? "" } = resolved;
      span.set({ "process.executable.name": posix.basename(file) });
      if (span.showsCommands) span.set({ "process.command_line": argv.join(" ") });
      return resolved;
    } catch (error) {
      span.fail(error instanceof PicodError ? error.reason : (errnoName(error) ?? "internal"));
      throw error;
    }
  }

  started(process: ManagedProcess): ManagedProcess {
    this.#span.set({ "process.pid": process.leaderPid });
    return process;
  }

  failed(end: ProcessEnd): ProcessEnd {
    this.#span.fail(end.reason);
    this.#processes.tellEnd(end);
    return end;
  }

  [Symbol.dispose](): void {
    this.#span[Symbol.dispose]();
  }
}
