import { libc } from "./libc.js";
import { check } from "./system-error.js";

const RLIMIT_NOFILE = 7;
/** What the daemon may open while the limit is lowered for a spawn on another thread. */
const RESERVE = 256;

/** Descriptors that this process may have, now and at most. */
export function readOpenFileLimits(): { soft: bigint; hard: bigint } {
  const pair = new BigUint64Array(2);
  check(libc.prlimit(0, RLIMIT_NOFILE, null, pair), "prlimit");
  return { soft: pair[0] ?? 0n, hard: pair[1] ?? 0n };
}

const limits = readOpenFileLimits();
let spawning = 0;

/**
 * Lowers the soft limit of open files to what a child is to inherit, from now until the function that it returns is called: Node
 * raised it to the hard limit. The limit is the whole process's; lowering it only refuses new descriptors.
 */
export function lowerOpenFileLimit(softOpenFiles: number): () => void {
  if (softOpenFiles === Number(limits.soft)) return leaveAsItIs;
  if (spawning++ === 0) setSoft(BigInt(softOpenFiles));
  return () => {
    if (--spawning === 0) setSoft(limits.soft);
  };
}

function leaveAsItIs(): void {}

/** Whether the daemon can go on opening files while the limit is that low. @param fd one that was made just now. */
export function leavesRoom(softOpenFiles: number, fd: number): boolean {
  return fd + RESERVE < softOpenFiles;
}

function setSoft(soft: bigint): void {
  const pair = BigUint64Array.of(soft < limits.hard ? soft : limits.hard, limits.hard);
  check(libc.prlimit(0, RLIMIT_NOFILE, pair, null), "prlimit");
}
