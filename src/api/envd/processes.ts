import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessConfig, ProcessSelector } from "../../gen/envd/process/process_pb.js";
import type { ProcessRecord } from "../../process/process-record.js";

/** So long the end of a process is told to those who come later. */
const RETAIN_MS = 30_000;

/** A process as E2B's clients know it. */
export interface EnvdProcess {
  readonly pid: number;
  readonly record: ProcessRecord;
  /** As it was asked for. */
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
}

/** The processes of E2B's clients, by pid or by tag; several may carry one tag. */
export class EnvdProcesses {
  readonly #live = new Set<EnvdProcess>();
  readonly #ended = new Map<EnvdProcess, NodeJS.Timeout>();

  live(): EnvdProcess[] {
    return [...this.#live];
  }

  /** What has ended under the same pid or tag is forgotten: its end is not this one's. */
  add(started: EnvdProcess): void {
    for (const old of this.#ended.keys()) {
      if (old.pid === started.pid || (old.tag !== undefined && old.tag === started.tag)) this.#forget(old);
    }
    this.#live.add(started);
    void started.record.process?.ended.then(() => {
      this.#live.delete(started);
      this.#ended.set(started, setTimeout(() => this.#forget(started), RETAIN_MS).unref());
    });
  }

  /** @throws not_found; unimplemented when it selects nothing. */
  find(message: ProcessSelector | undefined): EnvdProcess {
    return found(message, this.#live);
  }

  /** Also one that has ended a moment ago. @throws as `find`. */
  findOrEnded(message: ProcessSelector | undefined): EnvdProcess {
    return found(message, [...this.#live, ...[...this.#ended.keys()].reverse()]);
  }

  #forget(ended: EnvdProcess): void {
    clearTimeout(this.#ended.get(ended));
    this.#ended.delete(ended);
  }
}

function found(message: ProcessSelector | undefined, among: Iterable<EnvdProcess>): EnvdProcess {
  const selector = message?.selector;
  if (selector?.case === undefined) throw new ConnectError("invalid input type: no process is selected", Code.Unimplemented);
  for (const each of among) if (each[selector.case] === selector.value) return each;
  throw new ConnectError(`process with ${selector.case} ${selector.value} not found`, Code.NotFound);
}
