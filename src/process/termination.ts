import { findMembers, type ProcessTree, signalTree } from "./process-tree.js";

/** How a termination went. */
export interface Termination {
  /** KILL was needed. */
  readonly forced: boolean;
  /** Processes that outlived even that (in uninterruptible sleep, or not ours to kill). */
  readonly survivingProcesses: number;
}

/** What a termination has to know while the tree is dying. */
export interface DyingTree extends ProcessTree {
  readonly hasTerminal: boolean;
  leaderIsReaped(): boolean;
  /** Calls back whenever a process has ended that may have been part of the tree. Returns the function that stops it. */
  onChange(listener: () => void): () => void;
}

/** How long a KILL may take to be obeyed, before it is sent again to whatever was forked meanwhile. */
const KILL_ROUND_MS = 200;
const KILL_ROUNDS = 10;
/** Members whose end is reported to somebody else are noticed this late. */
const POLL_MS = 100;

/** TERM to the whole tree, a grace period, then KILL until nothing is left. Never rejects. */
export async function terminate(tree: DyingTree, graceMs: number): Promise<Termination> {
  signalTree(tree, tree.leaderIsReaped(), "SIGTERM");
  // Shells that are typed at ignore TERM: what tells them that nobody is there any longer is the terminal's hang-up.
  if (tree.hasTerminal) signalTree(tree, tree.leaderIsReaped(), "SIGHUP");
  // A stopped process would not act on TERM.
  signalTree(tree, tree.leaderIsReaped(), "SIGCONT");
  if (await goneWithin(tree, graceMs)) return { forced: false, survivingProcesses: 0 };
  for (let round = 1; round <= KILL_ROUNDS; round++) {
    signalTree(tree, tree.leaderIsReaped(), "SIGKILL");
    if (await goneWithin(tree, KILL_ROUND_MS)) return { forced: true, survivingProcesses: 0 };
  }
  return { forced: true, survivingProcesses: findMembers(tree, tree.leaderIsReaped()).length };
}

/** Ends the tree at once and does not wait. */
export function killNow(tree: DyingTree): void {
  signalTree(tree, tree.leaderIsReaped(), "SIGKILL");
}

function goneWithin(tree: DyingTree, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (gone: boolean) => {
      clearTimeout(timer);
      clearInterval(poll);
      stopListening();
      resolve(gone);
    };
    const look = () => {
      if (tree.leaderIsReaped() && findMembers(tree, true).length === 0) finish(true);
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    const poll = setInterval(look, POLL_MS);
    const stopListening = tree.onChange(look);
    look();
  });
}
