import { listProcesses, type ProcessEntry, readEnvironment } from "../os/proc.js";
import { sendSignal } from "../os/spawn.js";
import { PROCESS_ID_VARIABLE } from "./environment.js";

/** A leader and everything that descends from it, wherever it went. */
export interface ProcessTree {
  readonly leaderPid: number;
  /** Value of the marker variable that every descendant inherits. */
  readonly processId: string;
}

/**
 * All that is alive of a tree: the leader's session and group, their descendants, and orphans that left both. An orphan comes to
 * this daemon, the child subreaper (or to PID 1), where its environment still carries the mark.
 */
export function findMembers(tree: ProcessTree, leaderIsReaped: boolean): ProcessEntry[] {
  const table = listProcesses().filter((entry) => entry.state !== "Z" && entry.state !== "X");
  // A reaped leader's number in the table is somebody else's by now, and so are session and group of that number.
  const numberIsOurs = !leaderIsReaped || !table.some((entry) => entry.pid === tree.leaderPid);
  const isRoot = (entry: ProcessEntry) =>
    (numberIsOurs && [entry.pid, entry.sessionId, entry.groupId].includes(tree.leaderPid)) || isMarkedOrphan(entry, tree);
  const members = new Set(table.filter(isRoot).map((entry) => entry.pid));
  for (let grown = true; grown; ) {
    const found = table.filter((entry) => members.has(entry.parentPid) && !members.has(entry.pid));
    for (const entry of found) members.add(entry.pid);
    grown = found.length > 0;
  }
  return table.filter((entry) => members.has(entry.pid) && entry.pid !== process.pid);
}

/** Signals every process of a tree once. */
export function signalTree(tree: ProcessTree, leaderIsReaped: boolean, signal: NodeJS.Signals): void {
  const { leaderPid } = tree;
  // The group as one, so that no member can fork away between two kills; then each that is not in it.
  if (!leaderIsReaped) sendSignal(-leaderPid, signal);
  const others = findMembers(tree, leaderIsReaped).filter((entry) => leaderIsReaped || entry.groupId !== leaderPid);
  for (const { pid } of others) sendSignal(pid, signal);
}

function isMarkedOrphan(entry: ProcessEntry, tree: ProcessTree): boolean {
  if (entry.parentPid !== process.pid && entry.parentPid !== 1) return false;
  return readEnvironment(entry.pid)?.includes(`${PROCESS_ID_VARIABLE}=${tree.processId}`) ?? false;
}
