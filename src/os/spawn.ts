import { constants } from "node:fs";
import { constants as osConstants } from "node:os";
import { changesIdentity, withIdentityOf } from "./credentials.js";
import { libc, onThread } from "./libc.js";
import { leavesRoom, lowerOpenFileLimit } from "./open-file-limit.js";
import { errnoName, systemError } from "./system-error.js";
import type { User } from "./users.js";

export interface SpawnOptions {
  /** Path of the program, as execve(2) takes it: relative ones count from `cwd`. */
  readonly file: string;
  /** argv[0] included. */
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly user: User;
  /** Descriptors of this process that become 0, 1 and 2 of the child, or the path of the terminal that all three are. */
  readonly stdio: readonly [stdin: number, stdout: number, stderr: number] | string;
  /** Soft limit of open files for the child: Node raised its own to the hard limit, which children must not inherit. */
  readonly softOpenFiles: number;
}

const POSIX_SPAWN_SETSIGDEF = 0x04;
const POSIX_SPAWN_SETSIGMASK = 0x08;
const POSIX_SPAWN_SETSID = 0x80;
const FIRST_REAL_TIME = 34;
const LAST_SIGNAL = 64;
const signalsByName: Readonly<Record<string, number>> = osConstants.signals;
/** Larger than posix_spawnattr_t, posix_spawn_file_actions_t and sigset_t of glibc and musl. */
const OPAQUE_BYTES = 512;
/** One of them is used; V8 moves arrays of up to 64 bytes. */
const PID_WORDS = 32;
/** Sixteen programs at once have come to about so many kinds. */
const MAX_IDLE_SCRATCH = 256;

const attributes = createAttributes();

/** What posix_spawn writes to and reads from while it is on another thread: larger than what V8 moves. */
interface Scratch {
  /** What its actions do. */
  readonly key: string;
  readonly actions: Uint8Array;
  readonly pid: Int32Array;
}

/**
 * Those that are not in use, by their keys, oldest first. The kernel gives out the same few numbers of descriptors again and
 * again, and to make actions takes eleven calls.
 */
const idleScratch = new Map<string, Scratch>();

/**
 * Starts a program as the leader of its own session and process group and returns its pid. posix_spawn shares the daemon's
 * memory until the child's execve, so its cost does not grow with the daemon (fork's does). The stdio descriptors stay open
 * here: the caller closes its copies. @throws the errno of execve or of changing directory: ENOENT, EACCES, ENOEXEC, E2BIG, EAGAIN, …
 */
export function spawn(options: SpawnOptions): number {
  return withOpenFileLimit(options, () => spawnHere(options));
}

/** Runs `spawn` while the soft limit of open files, which is one for all threads, is what the child is to inherit. */
export function withOpenFileLimit(options: SpawnOptions, spawn: () => number): number {
  const raiseLimit = lowerOpenFileLimit(options.softOpenFiles);
  try {
    return spawn();
  } finally {
    raiseLimit();
  }
}

/** `spawn` without the limit of open files: the child has all restrictions of the calling thread. */
export function spawnHere(options: SpawnOptions): number {
  const scratch = takeScratch(options);
  const { actions, pid } = scratch;
  try {
    const [argv, env] = vectors(options);
    const result = withIdentityOf(options.user, () => libc.posix_spawn(pid, options.file, actions, attributes, argv, env));
    if (result !== 0) throw systemError("spawn", options.file, result);
  } finally {
    giveBack(scratch);
  }
  return pid[0] ?? -1;
}

/**
 * The same without stopping the event loop: until its execve, for which it may have to wait for a processor, a child holds up the
 * thread that made it. Undefined where only the main thread can: for another user, whose identity it takes for a moment, and when
 * descriptors are scarce.
 */
export function spawnOffLoop(options: SpawnOptions): Promise<number> | undefined {
  const { user, stdio, softOpenFiles } = options;
  if (changesIdentity(user) || typeof stdio === "string" || !leavesRoom(softOpenFiles, Math.max(...stdio))) return undefined;
  return spawnOnThread(options);
}

async function spawnOnThread(options: SpawnOptions): Promise<number> {
  const { file, softOpenFiles } = options;
  const scratch = takeScratch(options);
  const { actions, pid } = scratch;
  const raiseLimit = lowerOpenFileLimit(softOpenFiles);
  try {
    const [argv, env] = vectors(options);
    const [result] = await onThread(libc.posix_spawn, pid, file, actions, attributes, argv, env);
    if (result !== 0) throw systemError("spawn", file, result);
  } finally {
    raiseLimit();
    giveBack(scratch);
  }
  return pid[0] ?? -1;
}

type Vector = (string | null)[];

function vectors({ argv, env }: SpawnOptions): [argv: Vector, env: Vector] {
  return [
    [...argv, null],
    [...env, null],
  ];
}

function takeScratch({ stdio, cwd }: SpawnOptions): Scratch {
  const key = `${stdio}:${cwd}`;
  const idle = idleScratch.get(key);
  if (idle !== undefined) {
    idleScratch.delete(key);
    return idle;
  }
  const scratch = { key, actions: new Uint8Array(OPAQUE_BYTES), pid: new Int32Array(PID_WORDS) };
  libc.posix_spawn_file_actions_init(scratch.actions);
  addStdio(scratch.actions, stdio);
  libc.posix_spawn_file_actions_addchdir_np(scratch.actions, cwd);
  return scratch;
}

/** Of two of one kind, as of programs without pipes that were started at once, the later one is kept. */
function giveBack(scratch: Scratch): void {
  drop(idleScratch.get(scratch.key));
  idleScratch.set(scratch.key, scratch);
  if (idleScratch.size > MAX_IDLE_SCRATCH) drop(idleScratch.values().next().value);
}

function drop(scratch: Scratch | undefined): void {
  if (scratch === undefined) return;
  libc.posix_spawn_file_actions_destroy(scratch.actions);
  idleScratch.delete(scratch.key);
}

/** The first terminal that the leader of a new session opens becomes its controlling one, so the child opens it itself. */
function addStdio(actions: Uint8Array, stdio: SpawnOptions["stdio"]): void {
  const fds = typeof stdio === "string" ? [undefined, 0, 0] : stdio;
  if (typeof stdio === "string") libc.posix_spawn_file_actions_addopen(actions, 0, stdio, constants.O_RDWR, 0);
  fds.forEach((fd, target) => {
    if (fd !== undefined) libc.posix_spawn_file_actions_adddup2(actions, fd, target);
  });
}

/** Sends a signal; false when nobody is there to get it, or it is not ours to signal. A negative pid names a process group. */
export function sendSignal(target: number, signal: NodeJS.Signals | number): boolean {
  try {
    return process.kill(target, signal);
  } catch (error) {
    if (["ESRCH", "EPERM"].includes(errnoName(error) ?? "")) return false;
    throw error;
  }
}

/** Name of a signal number: "SIGTERM". Real-time signals have none and are "SIGRTMIN+n". */
export function signalName(number: number): string {
  const named = Object.entries(signalsByName).find(([, value]) => value === number);
  return named?.[0] ?? (number >= FIRST_REAL_TIME ? `SIGRTMIN+${number - FIRST_REAL_TIME}` : `SIG${number}`);
}

/** The number of "SIGTERM", "TERM", "15" or "SIGRTMIN+1"; undefined when there is no such signal. */
export function signalNumber(text: string): number | undefined {
  const name = text.toUpperCase().replace(/^(?:SIG)?/, "SIG");
  const realTime = /^SIGRTMIN(?:\+(\d+))?$/.exec(name);
  const number = /^\d+$/.test(text) ? Number(text) : realTime ? FIRST_REAL_TIME + Number(realTime[1] ?? 0) : signalsByName[name];
  return number !== undefined && number > 0 && number <= LAST_SIGNAL ? number : undefined;
}

/** Own session; every signal at its default, since Node ignores SIGPIPE and that would be inherited; no signal blocked. */
function createAttributes(): Uint8Array {
  const created = new Uint8Array(OPAQUE_BYTES);
  const signals = new Uint8Array(OPAQUE_BYTES);
  libc.posix_spawnattr_init(created);
  libc.posix_spawnattr_setflags(created, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  libc.sigemptyset(signals);
  libc.posix_spawnattr_setsigmask(created, signals);
  libc.sigfillset(signals);
  libc.posix_spawnattr_setsigdefault(created, signals);
  return created;
}
