import { listProcesses, type ProcessEntry, readEnvironment } from "../os/proc.js";
import { sendSignal } from "../os/spawn.js";
import { PROCESS_ID_VARIABLE } from "./environment.js";

/** A leader and everything that descends from it, wherever it went. */
export interface ProcessTree {
  readonly leaderPid: number;
  /** Value of the marker variable that every descendant inherits. */
  readonly processId: string;
}

/** The live processes of one moment, for as many questions as there are. */
export class ProcessSnapshot {
  readonly entries: readonly ProcessEntry[] = listProcesses().filter((entry) => entry.state !== "Z" && entry.state !== "X");
  readonly #marks = new Map<number, string | undefined>();

  /** The mark in the environment of an orphan; of others the parent tells. */
  markOfOrphan(entry: ProcessEntry): string | undefined {
    return entry.parentPid === process.pid || entry.parentPid === 1 ? this.markOf(entry) : undefined;
  }

  markOf({ pid }: ProcessEntry): string | undefined {
    if (!this.#marks.has(pid))
      this.#marks.set(
        pid,
        readEnvironment(pid)?.find((variable) => variable.startsWith(`${PROCESS_ID_VARIABLE}=`)),
      );
    return this.#marks.get(pid);
  }
}

/**
 * All that is alive of a tree: the leader's session and group, their descendants, and orphans that left both. An orphan comes to
 * this daemon, the child subreaper (or to PID 1), where its environment still carries the mark.
 */
export function findMembers(tree: ProcessTree, leaderIsReaped: boolean, snapshot = new ProcessSnapshot()): ProcessEntry[] {
  const { entries } = snapshot;
  const mark = `${PROCESS_ID_VARIABLE}=${tree.processId}`;
  // A reaped leader's number in the table is somebody else's by now, and so are session and group of that number.
  const numberIsOurs = !leaderIsReaped || !entries.some((entry) => entry.pid === tree.leaderPid);
  // Once nothing of ours was left the number may have been another leader's, which has ended too: the mark tells.
  const isMarkedOurs = (entry: ProcessEntry) => !leaderIsReaped || (snapshot.markOf(entry) ?? mark) === mark;
  const isRoot = (entry: ProcessEntry) =>
    (numberIsOurs && [entry.pid, entry.sessionId, entry.groupId].includes(tree.leaderPid) && isMarkedOurs(entry)) ||
    snapshot.markOfOrphan(entry) === mark;
  const members = new Set(entries.filter(isRoot).map((entry) => entry.pid));
  for (let grown = true; grown; ) {
    const found = entries.filter((entry) => members.has(entry.parentPid) && !members.has(entry.pid));
    for (const entry of found) members.add(entry.pid);
    grown = found.length > 0;
  }
  return entries.filter((entry) => members.has(entry.pid) && entry.pid !== process.pid);
}

/** Signals every process of a tree once. */
export function signalTree(tree: ProcessTree, leaderIsReaped: boolean, signal: NodeJS.Signals): void {
  const { leaderPid } = tree;
  // The group as one, so that no member can fork away between two kills; then each that is not in it.
  if (!leaderIsReaped) sendSignal(-leaderPid, signal);
  const others = findMembers(tree, leaderIsReaped).filter((entry) => leaderIsReaped || entry.groupId !== leaderPid);
  for (const { pid } of others) sendSignal(pid, signal);
}
