import { readdirSync, readFileSync, statSync } from "node:fs";
import { withFileRightsOf } from "./credentials.js";
import { errnoName } from "./system-error.js";

/** One line of the process table, from /proc/<pid>/stat. */
export interface ProcessEntry {
  readonly pid: number;
  readonly state: string;
  readonly parentPid: number;
  readonly groupId: number;
  readonly sessionId: number;
}

/** Every process that this daemon can see; empty where /proc is not mounted. */
export function listProcesses(): ProcessEntry[] {
  return readDirectory("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readEntry(Number(name)))
    .filter((entry) => entry !== undefined);
}

/** The environment that a process was started with, "NAME=value" each; undefined when it is gone or not ours to read. */
export function readEnvironment(pid: number): string[] | undefined {
  const owner = statSync(`/proc/${pid}`, { throwIfNoEntry: false });
  if (owner === undefined) return undefined;
  // Without CAP_SYS_PTRACE even root may look into another user's process only as that user (PTRACE_MODE_FSCREDS of ptrace(2)).
  const user = { name: "", uid: owner.uid, gid: owner.gid, home: "/", shell: "", groups: [owner.gid] };
  return withFileRightsOf({ user }, () => readText(`/proc/${pid}/environ`))?.split("\0");
}

function readEntry(pid: number): ProcessEntry | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The second field is the name in parentheses and may itself hold spaces and parentheses.
  const [state = "", parentPid, groupId, sessionId] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { pid, state, parentPid: Number(parentPid), groupId: Number(groupId), sessionId: Number(sessionId) };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    return ignoreGone(error);
  }
}

function readDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    return ignoreGone(error) ?? [];
  }
}

/** Processes come and go while they are listed, and those of others may not be read. */
function ignoreGone(error: unknown): undefined {
  if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(errnoName(error) ?? "")) return undefined;
  throw error;
}
