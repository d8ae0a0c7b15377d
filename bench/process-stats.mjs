import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** Of /proc/PID/stat on every Linux: sysconf(_SC_CLK_TCK). */
const TICKS_PER_SECOND = 100;
/** For /proc/PID/clear_refs: begin a new peak of resident memory. */
const RESET_PEAK = "5";

/**
 * The daemon's own processes: the one that was started, and those below it that run the same daemon's programs. What it started
 * for a caller is not part of it.
 */
export function daemonPids(rootPid, programs) {
  const table = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? []);
  const pids = new Set([rootPid]);
  for (let grown = true; grown; ) {
    const found = table.filter(({ pid, parent, program }) => pids.has(parent) && !pids.has(pid) && programs.includes(program));
    for (const { pid } of found) pids.add(pid);
    grown = found.length > 0;
  }
  return [...pids];
}

/** CPU time so far: of the processes themselves, and of the children that they have waited for. */
export function cpuSeconds(pids) {
  const stats = pids.flatMap((pid) => readStat(pid) ?? []);
  const sum = (field) => stats.reduce((total, stat) => total + stat[field], 0) / TICKS_PER_SECOND;
  return { own: sum("ownTicks"), children: sum("childrenTicks") };
}

export function memory(pids) {
  const fields = pids.map((pid) => readKib(`/proc/${pid}/smaps_rollup`));
  const mib = (field) => fields.reduce((total, values) => total + (values[field] ?? 0), 0) / 1024;
  return { residentMib: mib("Rss"), anonymousMib: mib("Anonymous") };
}

/** The largest resident memory since the last reset. */
export function peakMib(pids) {
  return pids.reduce((total, pid) => total + (readKib(`/proc/${pid}/status`).VmHWM ?? 0), 0) / 1024;
}

export function resetPeak(pids) {
  for (const pid of pids) unlessEnded(() => writeFileSync(`/proc/${pid}/clear_refs`, RESET_PEAK));
}

/** Nothing for a process that has ended. */
function readKib(path) {
  const lines = (unlessEnded(() => readFileSync(path, "utf8")) ?? "").matchAll(/^(\w+):\s+(\d+) kB$/gm);
  return Object.fromEntries([...lines].map(([, name, kib]) => [name, Number(kib)]));
}

/** Undefined for a process that has ended. */
function readStat(pid) {
  const text = unlessEnded(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (text === undefined) return undefined;
  const [, program] = /\((.*)\)/s.exec(text) ?? [];
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map(Number);
  return { pid, program, parent: Number(fields[1]), ownTicks: user + system, childrenTicks: childrenUser + childrenSystem };
}

/** sshd ends a process with each connection and command, perhaps between being listed and being read. */
function unlessEnded(access) {
  try {
    return access();
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "ESRCH") throw error;
    return undefined;
  }
}
