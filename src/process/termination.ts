import type { Census } from "./census.js";
import { ProcessSnapshot } from "./process-snapshot.js";
import { findMembers, type ProcessTree, signalGroup, signalOthers } from "./process-tree.js";

/** How a termination went. */
export interface Termination {
  /** KILL was needed. */
  readonly forced: boolean;
  /** Processes that outlived even that (in uninterruptible sleep, or not ours to kill). */
  readonly survivingProcesses: number;
}

/** Milliseconds from TERM to KILL; "none" is KILL at once. */
export type Grace = number | "none";

/** What a termination has to know while the tree is dying. */
export interface DyingTree extends ProcessTree {
  readonly hasTerminal: boolean;
  readonly census: Census;
  leaderIsReaped(): boolean;
  /** Calls back whenever a process has ended that may have been part of the tree. Returns the function that stops it. */
  onChange(listener: () => void): () => void;
}

/** How long a KILL may take to be obeyed, before it is sent again to whatever was forked meanwhile. */
const KILL_ROUND_MS = 200;
const KILL_ROUNDS = 10;
/** Members whose end is reported to somebody else are noticed this late. */
const POLL_MS = 100;

/** What ends a process that may be asked; and a stopped one would not act on it. */
const FAREWELL = ["SIGTERM", "SIGCONT"] as const;
/** Shells that are typed at ignore TERM: what tells them that nobody is there any longer is the terminal's hang-up. */
const FAREWELL_AT_TERMINAL = ["SIGTERM", "SIGHUP", "SIGCONT"] as const;

/** TERM to the whole tree, a grace period, then KILL until nothing is left. Never rejects. */
export async function terminate(tree: DyingTree, grace: Grace): Promise<Termination> {
  if (grace !== "none") {
    const isGone = goneWithin(tree, grace);
    await signalTree(tree, tree.hasTerminal ? FAREWELL_AT_TERMINAL : FAREWELL);
    if (await isGone) return { forced: false, survivingProcesses: 0 };
  }
  for (let round = 1; round <= KILL_ROUNDS; round++) {
    const isGone = goneWithin(tree, KILL_ROUND_MS);
    await signalTree(tree, ["SIGKILL"]);
    if (await isGone) return { forced: true, survivingProcesses: 0 };
  }
  return { forced: true, survivingProcesses: findMembers(tree, tree.leaderIsReaped(), await tree.census.take()).length };
}

/** Signals every process of a tree: the group at once, the others a moment later. */
export async function signalTree(tree: DyingTree, signals: readonly NodeJS.Signals[]): Promise<void> {
  const groupIsSignalled = signalGroup(tree, tree.leaderIsReaped(), signals);
  const snapshot = await tree.census.take();
  signalOthers(tree, tree.leaderIsReaped(), groupIsSignalled, signals, snapshot);
}

/** KILL for every process of some trees, before this returns. */
export function killNow(trees: readonly DyingTree[]): void {
  const grouped = new Set(trees.filter((tree) => signalGroup(tree, tree.leaderIsReaped(), ["SIGKILL"])));
  const snapshot = new ProcessSnapshot();
  for (const tree of trees) signalOthers(tree, tree.leaderIsReaped(), grouped.has(tree), ["SIGKILL"], snapshot);
}

function goneWithin(tree: DyingTree, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (gone: boolean) => {
      clearTimeout(timer);
      clearInterval(poll);
      stopListening();
      resolve(gone);
    };
    const look = async () => {
      if (!tree.leaderIsReaped()) return;
      if (findMembers(tree, true, await tree.census.take()).length === 0) finish(true);
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    const poll = setInterval(look, POLL_MS);
    const stopListening = tree.onChange(look);
    void look();
  });
}
