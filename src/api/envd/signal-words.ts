import { signalNumber } from "../../os/spawn.js";

/** By number from 1 on, as Go calls them on Linux. */
const WORDS = [
  "hangup",
  "interrupt",
  "quit",
  "illegal instruction",
  "trace/breakpoint trap",
  "aborted",
  "bus error",
  "floating point exception",
  "killed",
  "user defined signal 1",
  "segmentation fault",
  "user defined signal 2",
  "broken pipe",
  "alarm clock",
  "terminated",
  "stack fault",
  "child exited",
  "continued",
  "stopped (signal)",
  "stopped",
  "stopped (tty input)",
  "stopped (tty output)",
  "urgent I/O condition",
  "CPU time limit exceeded",
  "file size limit exceeded",
  "virtual timer expired",
  "profiling timer expired",
  "window changed",
  "I/O possible",
  "power failure",
  "bad system call",
];

/** What ended a process: "killed" for SIGKILL; "signal 34" where there is no word. */
export function describeSignal(name: string): string {
  const number = signalNumber(name) ?? 0;
  return WORDS[number - 1] ?? `signal ${number}`;
}
