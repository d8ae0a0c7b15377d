import { listProcesses, type ProcessEntry, readEnvironment } from "../os/proc.js";
import { PROCESS_ID_VARIABLE } from "./environment.js";

/** The live processes of one moment, for as many questions as there are. */
export class ProcessSnapshot {
  readonly #byNumber = new Map<number, ProcessEntry[]>();
  readonly #byParent = new Map<number, ProcessEntry[]>();
  readonly #orphans: ProcessEntry[] = [];
  readonly #marks = new Map<number, string | undefined>();
  #orphansByMark: ReadonlyMap<string | undefined, readonly ProcessEntry[]> | undefined;

  constructor() {
    for (const entry of listProcesses()) {
      if (entry.state === "Z" || entry.state === "X") continue;
      for (const number of new Set([entry.pid, entry.sessionId, entry.groupId])) add(this.#byNumber, number, entry);
      add(this.#byParent, entry.parentPid, entry);
      if (entry.parentPid === process.pid || entry.parentPid === 1) this.#orphans.push(entry);
    }
  }

  has(pid: number): boolean {
    return this.withNumber(pid).some((entry) => entry.pid === pid);
  }

  /** The process of that number, and all of its session and its group. */
  withNumber(number: number): readonly ProcessEntry[] {
    return this.#byNumber.get(number) ?? [];
  }

  childrenOf(pid: number): readonly ProcessEntry[] {
    return this.#byParent.get(pid) ?? [];
  }

  /** Those that came to this daemon, the child subreaper, or to PID 1, and whose environment carries the mark. */
  orphansOf(processId: string): readonly ProcessEntry[] {
    this.#orphansByMark ??= Map.groupBy(this.#orphans, (entry) => this.markOf(entry));
    return this.#orphansByMark.get(processId) ?? [];
  }

  /** The id that a process has inherited; undefined without one, and where the environment is not ours to read. */
  markOf({ pid }: ProcessEntry): string | undefined {
    if (!this.#marks.has(pid)) this.#marks.set(pid, readMark(pid));
    return this.#marks.get(pid);
  }
}

function readMark(pid: number): string | undefined {
  const beginning = `${PROCESS_ID_VARIABLE}=`;
  return readEnvironment(pid)
    ?.find((variable) => variable.startsWith(beginning))
    ?.slice(beginning.length);
}

function add(map: Map<number, ProcessEntry[]>, key: number, entry: ProcessEntry): void {
  const found = map.get(key);
  if (found === undefined) map.set(key, [entry]);
  else found.push(entry);
}
