import { readdirSync, readFileSync } from "node:fs";
import { errno, libc } from "./libc.js";
import { check } from "./system-error.js";

const F_GETFD = 1;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const PR_SET_DUMPABLE = 4;
const EBADF = 9;

/** Descriptors that this process inherited would pass to every child: marks them to be closed at exec. */
export function closeInheritedDescriptorsOnExec(): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const fd = Number(name);
    const flags = fd > 2 ? libc.fcntl(fd, F_GETFD, 0) : FD_CLOEXEC;
    if (flags < 0 && errno() !== EBADF) throw new Error(`fcntl of descriptor ${fd} failed`);
    if (flags >= 0 && (flags & FD_CLOEXEC) === 0) libc.fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

/** Makes memory, environment and descriptors of this process unreadable for other processes of the same user, prctl(2). */
export function makeUndumpable(): void {
  check(libc.prctl(PR_SET_DUMPABLE, 0), "prctl");
}

/**
 * Overwrites a secret in the arguments and the environment that the kernel shows of this process (/proc/<pid>/cmdline and
 * environ). `delete process.env.X` does not: it changes a copy.
 */
export function scrubFromStartupMemory(secret: string): void {
  const bytes = Buffer.from(secret);
  const stat = readFileSync("/proc/self/stat", "latin1");
  // Fields 48 to 51 of proc_pid_stat(5); the third comes first here.
  const [argStart, argEnd, envStart, envEnd] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(45, 49)
    .map(BigInt);
  scrubRange("/proc/self/cmdline", argStart, argEnd, bytes);
  scrubRange("/proc/self/environ", envStart, envEnd, bytes);
}

function scrubRange(shownAs: string, start: bigint | undefined, end: bigint | undefined, secret: Buffer): void {
  if (start === undefined || end === undefined) return;
  const shown = readFileSync(shownAs).subarray(0, Number(end - start));
  for (let at = shown.indexOf(secret); at >= 0; at = shown.indexOf(secret, at + secret.length)) {
    libc.memset(start + BigInt(at), 0x2a, secret.length);
  }
}
