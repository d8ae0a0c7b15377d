import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessConfig, ProcessSelector } from "../../gen/envd/process/process_pb.js";
import type { Capability } from "../../policy/capability.js";
import { assertMayUse, mayUse } from "../../process/permit-command.js";
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

/** The processes of E2B's clients, by pid or by tag; several may carry one tag, also of several capabilities. */
export class EnvdProcesses {
  readonly #live = new Set<EnvdProcess>();
  readonly #ended = new Map<EnvdProcess, NodeJS.Timeout>();

  live(): EnvdProcess[] {
    return [...this.#live];
  }

  /** What has ended under the same pid, or the same tag of that capability, is forgotten: its end is not this one's. */
  add(started: EnvdProcess): void {
    for (const old of this.#ended.keys()) {
      if (old.pid === started.pid || hasSameTag(old, started)) this.#forget(old);
    }
    this.#live.add(started);
    void started.record.process?.ended.then(() => {
      this.#live.delete(started);
      this.#ended.set(started, setTimeout(() => this.#forget(started), RETAIN_MS).unref());
    });
  }

  /** Among those that somebody with that capability may use. @throws not_found; POLICY_DENIED; unimplemented when it selects nothing. */
  find(message: ProcessSelector | undefined, capability: Capability | undefined): EnvdProcess {
    return found(message, capability, [...this.#live]);
  }

  /** Also one that has ended a moment ago. @throws as `find`. */
  findOrEnded(message: ProcessSelector | undefined, capability: Capability | undefined): EnvdProcess {
    return found(message, capability, [...this.#live, ...[...this.#ended.keys()].reverse()]);
  }

  #forget(ended: EnvdProcess): void {
    clearTimeout(this.#ended.get(ended));
    this.#ended.delete(ended);
  }
}

function hasSameTag({ tag, record }: EnvdProcess, other: EnvdProcess): boolean {
  return tag !== undefined && tag === other.tag && record.from.owner === other.record.from.owner;
}

function found(
  message: ProcessSelector | undefined,
  capability: Capability | undefined,
  among: readonly EnvdProcess[],
): EnvdProcess {
  const selector = message?.selector;
  if (selector?.case === undefined) throw new ConnectError("invalid input type: no process is selected", Code.Unimplemented);
  const selected = among.filter((each) => each[selector.case] === selector.value);
  const usable = selected.find(({ record }) => mayUse(capability, record.from.owner));
  if (usable !== undefined) return usable;
  for (const { record } of selected) assertMayUse(capability, { id: record.id, owner: record.from.owner });
  throw new ConnectError(`process with ${selector.case} ${selector.value} not found`, Code.NotFound);
}
