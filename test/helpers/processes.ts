import { readFileSync } from "node:fs";
import { listProcesses } from "../../src/os/proc.js";

/** Pids of live processes whose command line holds the text. */
export function processesNamed(text: string): number[] {
  return listProcesses()
    .filter((entry) => entry.state !== "Z" && commandLine(entry.pid).includes(text))
    .map((entry) => entry.pid);
}

/** Whether a process runs: one that nobody has asked how it ended does not. */
export function isAlive(pid: number): boolean {
  return listProcesses().some((entry) => entry.pid === pid && entry.state !== "Z");
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    // It ended while the list was read.
    return "";
  }
}
