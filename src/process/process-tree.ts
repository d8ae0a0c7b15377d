import type { ProcessEntry } from "../os/proc.js";
import { sendSignal } from "../os/spawn.js";
import { ProcessSnapshot } from "./process-snapshot.js";

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
export function findMembers(tree: ProcessTree, leaderIsReaped: boolean, snapshot = new ProcessSnapshot()): ProcessEntry[] {
  const { leaderPid, processId } = tree;
  // A reaped leader's number in the table is somebody else's by now, and so are session and group of that number.
  const numberIsOurs = !leaderIsReaped || !snapshot.has(leaderPid);
  // Once nothing of ours was left the number may have been another leader's, which has ended too: the mark tells.
  const isMarkedOurs = (entry: ProcessEntry) => !leaderIsReaped || (snapshot.markOf(entry) ?? processId) === processId;
  const numbered = numberIsOurs ? snapshot.withNumber(leaderPid).filter(isMarkedOurs) : [];
  const members = new Set([...numbered, ...snapshot.orphansOf(processId)]);
  // The loop comes to those that are added, too.
  for (const { pid } of members) for (const child of snapshot.childrenOf(pid)) members.add(child);
  return [...members].filter(({ pid }) => pid !== process.pid);
}

/** Signals the leader's group as one, so that no member can fork away between two kills. False when its number is no longer ours. */
export function signalGroup({ leaderPid }: ProcessTree, leaderIsReaped: boolean, signals: readonly NodeJS.Signals[]): boolean {
  if (leaderIsReaped) return false;
  for (const signal of signals) sendSignal(-leaderPid, signal);
  return true;
}

/** Signals each that was not reached with the group. */
export function signalOthers(
  tree: ProcessTree,
  leaderIsReaped: boolean,
  groupIsSignalled: boolean,
  signals: readonly NodeJS.Signals[],
  snapshot: ProcessSnapshot,
): void {
  for (const { pid, groupId } of findMembers(tree, leaderIsReaped, snapshot)) {
    if (groupIsSignalled && groupId === tree.leaderPid) continue;
    for (const signal of signals) sendSignal(pid, signal);
  }
}
