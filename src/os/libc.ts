import koffi, { type TypeObject } from "koffi";

/** Calls on the thread pool: how many at once, and the memory of each. Spawns need little, and come in crowds. */
const ASYNC_CALLS = { async_stack_size: 64 * 1024, async_heap_size: 64 * 1024, resident_async_pools: 32, max_async_calls: 4096 };

/**
 * The C library calls that Node does not offer, each with its one signature. A wrong signature is a crash, not an exception:
 * every line here is called for real by test/os.
 *
 * `load(null)` takes the symbols of the running program, which is linked to its libc whatever that is called (glibc, musl).
 */
koffi.config(ASYNC_CALLS);
const library = koffi.load(null);

/** Raw system call numbers that differ between the two supported architectures, then those that do not. */
const numbers =
  process.arch === "arm64"
    ? {
        setresuid: 147,
        setresgid: 149,
        setfsuid: 151,
        setfsgid: 152,
        setgroups: 159,
        getdents64: 61,
        statx: 291,
        capget: 90,
        capset: 91,
        unshare: 97,
        setns: 268,
        seccomp: 277,
      }
    : {
        setresuid: 117,
        setresgid: 119,
        setfsuid: 122,
        setfsgid: 123,
        setgroups: 116,
        getdents64: 217,
        statx: 332,
        capget: 125,
        capset: 126,
        unshare: 272,
        setns: 308,
        seccomp: 317,
      };
const copyNumbers = process.arch === "arm64" ? { mknodat: 33, copy_file_range: 285 } : { mknodat: 259, copy_file_range: 326 };

export const SYSCALL = {
  ...numbers,
  ...copyNumbers,
  open_tree: 428,
  move_mount: 429,
  openat2: 437,
  faccessat2: 439,
  mount_setattr: 442,
  landlock_create_ruleset: 444,
  landlock_add_rule: 445,
  landlock_restrict_self: 446,
} as const;

type Bytes = Uint8Array | Int32Array | Uint32Array | BigUint64Array;
/** Text, or bytes that end with a NUL: see encodePath. */
type Path = string | Uint8Array;

/** struct sock_fprog of linux/filter.h. */
const filterProgram = koffi.struct({ length: "ushort", filter: "void *" });

function declare<Arguments extends unknown[], Result = number>(
  name: string,
  result: string,
  parameters: (string | TypeObject)[],
) {
  return library.func(name, result, parameters) as unknown as (...args: Arguments) => Result;
}

/** Undefined: this C library does not have it. */
function declareIfAny<Arguments extends unknown[]>(name: string, result: string, parameters: string[]) {
  try {
    return declare<Arguments>(name, result, parameters);
  } catch {
    return undefined;
  }
}

export const libc = {
  read: declare<[fd: number, buffer: Bytes, size: number]>("read", "long", ["int", "void *", "size_t"]),
  writeText: declare<[fd: number, text: string, size: number]>("write", "long", ["int", "str", "size_t"]),
  close: declare<[fd: number]>("close", "int", ["int"]),
  pipe2: declare<[fds: Int32Array, flags: number]>("pipe2", "int", ["void *", "int"]),
  fcntl: declare<[fd: number, command: number, argument: number]>("fcntl", "int", ["int", "int", "int"]),
  flock: declare<[fd: number, operation: number]>("flock", "int", ["int", "int"]),
  ioctl: declare<[fd: number, request: number, argument: Bytes | Uint16Array]>("ioctl", "int", ["int", "ulong", "void *"]),
  prctl: declare<[option: number, argument: number]>("prctl", "int", ["int", "long"]),
  /** Those of prctl(2) that want every other argument to be 0. */
  prctlStrict: declare<[option: number, a: number, b: number, c: number, d: number]>("prctl", "int", [
    "int",
    "long",
    "long",
    "long",
    "long",
  ]),
  prlimit: declare<[pid: number, resource: number, next: BigUint64Array | null, previous: BigUint64Array | null]>(
    "prlimit",
    "int",
    ["int", "int", "void *", "void *"],
  ),
  wait4: declare<[pid: number, status: Int32Array, options: number, usage: Bytes]>("wait4", "int", [
    "int",
    "void *",
    "int",
    "void *",
  ]),
  /** Of glibc. */
  malloc_trim: declareIfAny<[padding: number]>("malloc_trim", "int", ["size_t"]),
  memset: declare<[address: bigint, byte: number, length: number], bigint>("memset", "uintptr_t", ["uintptr_t", "int", "size_t"]),

  openat: declare<[dirfd: number, path: Path, flags: number, mode: number]>("openat", "int", ["int", "str", "int", "uint"]),
  mkdirat: declare<[dirfd: number, path: Path, mode: number]>("mkdirat", "int", ["int", "str", "uint"]),
  unlinkat: declare<[dirfd: number, path: Path, flags: number]>("unlinkat", "int", ["int", "str", "int"]),
  renameat: declare<[fromDirfd: number, from: Path, toDirfd: number, to: Path]>("renameat", "int", ["int", "str", "int", "str"]),
  renameat2: declare<[fromDirfd: number, from: Path, toDirfd: number, to: Path, flags: number]>("renameat2", "int", [
    "int",
    "str",
    "int",
    "str",
    "uint",
  ]),
  linkat: declare<[fromDirfd: number, from: Path, toDirfd: number, to: Path, flags: number]>("linkat", "int", [
    "int",
    "str",
    "int",
    "str",
    "int",
  ]),
  readlinkat: declare<[dirfd: number, path: Path, buffer: Bytes, size: number]>("readlinkat", "long", [
    "int",
    "str",
    "void *",
    "size_t",
  ]),

  fchownat: declare<[dirfd: number, path: Path, uid: number, gid: number, flags: number]>("fchownat", "int", [
    "int",
    "str",
    "uint",
    "uint",
    "int",
  ]),
  utimensat: declare<[dirfd: number, path: Path, times: BigInt64Array, flags: number]>("utimensat", "int", [
    "int",
    "str",
    "void *",
    "int",
  ]),
  setxattr: declare<[path: Path, name: Path, value: Bytes, size: number, flags: number]>("setxattr", "int", [
    "str",
    "str",
    "void *",
    "size_t",
    "int",
  ]),
  getxattr: declare<[path: Path, name: Path, value: Bytes, size: number]>("getxattr", "long", ["str", "str", "void *", "size_t"]),
  listxattr: declare<[path: Path, names: Bytes, size: number]>("listxattr", "long", ["str", "void *", "size_t"]),
  removexattr: declare<[path: Path, name: Path]>("removexattr", "int", ["str", "str"]),

  symlinkat: declare<[target: Path, dirfd: number, path: Path]>("symlinkat", "int", ["str", "int", "str"]),
  /** Raw: there are C libraries without these wrappers. */
  getdents64: declare<[number: number, fd: number, entries: Bytes, size: number]>("syscall", "long", [
    "long",
    "int",
    "void *",
    "size_t",
  ]),
  statx: declare<[number: number, dirfd: number, path: Path, flags: number, mask: number, result: Bytes]>("syscall", "long", [
    "long",
    "int",
    "str",
    "int",
    "uint",
    "void *",
  ]),

  inotify_init1: declare<[flags: number]>("inotify_init1", "int", ["int"]),
  inotify_add_watch: declare<[fd: number, path: string, mask: number]>("inotify_add_watch", "int", ["int", "str", "uint"]),
  inotify_rm_watch: declare<[fd: number, wd: number]>("inotify_rm_watch", "int", ["int", "int"]),
  /** Raw: older glibc has it as an inline function only. */
  mknodat: declare<[number: number, dirfd: number, path: Path, mode: number, device: number]>("syscall", "long", [
    "long",
    "int",
    "str",
    "uint",
    "uint",
  ]),
  faccessat2: declare<[number: number, dirfd: number, path: Path, mode: number, flags: number]>("syscall", "long", [
    "long",
    "int",
    "str",
    "int",
    "int",
  ]),
  lseek: declare<[fd: number, offset: number, whence: number]>("lseek", "long", ["int", "long", "int"]),
  sync_file_range: declare<[fd: number, offset: number, length: number, flags: number]>("sync_file_range", "int", [
    "int",
    "long",
    "long",
    "uint",
  ]),
  /** ioctl(2) whose argument is a number. */
  ioctlNumber: declare<[fd: number, request: number, argument: number]>("ioctl", "int", ["int", "ulong", "int"]),
  /** From and to where the descriptors stand. */
  copy_file_range: declare<
    [number: number, from: number, fromOffset: null, to: number, toOffset: null, length: number, flags: number]
  >("syscall", "long", ["long", "int", "void *", "int", "void *", "size_t", "uint"]),

  posix_spawn: declare<
    [pid: Int32Array, path: string, actions: Bytes, attributes: Bytes, argv: (string | null)[], envp: (string | null)[]]
  >("posix_spawn", "int", ["void *", "str", "void *", "void *", "str *", "str *"]),
  posix_spawnattr_init: declare<[attributes: Bytes]>("posix_spawnattr_init", "int", ["void *"]),
  posix_spawnattr_setflags: declare<[attributes: Bytes, flags: number]>("posix_spawnattr_setflags", "int", ["void *", "short"]),
  posix_spawnattr_setsigdefault: declare<[attributes: Bytes, signals: Bytes]>("posix_spawnattr_setsigdefault", "int", [
    "void *",
    "void *",
  ]),
  posix_spawnattr_setsigmask: declare<[attributes: Bytes, signals: Bytes]>("posix_spawnattr_setsigmask", "int", [
    "void *",
    "void *",
  ]),
  posix_spawn_file_actions_init: declare<[actions: Bytes]>("posix_spawn_file_actions_init", "int", ["void *"]),
  posix_spawn_file_actions_destroy: declare<[actions: Bytes]>("posix_spawn_file_actions_destroy", "int", ["void *"]),
  posix_spawn_file_actions_addopen: declare<[actions: Bytes, fd: number, path: string, flags: number, mode: number]>(
    "posix_spawn_file_actions_addopen",
    "int",
    ["void *", "int", "str", "int", "uint"],
  ),
  posix_spawn_file_actions_adddup2: declare<[actions: Bytes, from: number, to: number]>(
    "posix_spawn_file_actions_adddup2",
    "int",
    ["void *", "int", "int"],
  ),
  posix_spawn_file_actions_addchdir_np: declare<[actions: Bytes, path: string]>("posix_spawn_file_actions_addchdir_np", "int", [
    "void *",
    "str",
  ]),
  sigfillset: declare<[signals: Bytes]>("sigfillset", "int", ["void *"]),
  sigemptyset: declare<[signals: Bytes]>("sigemptyset", "int", ["void *"]),

  /** Raw, because the C library's wrappers change the credentials of every thread, and these of the calling one alone. */
  syscall3: declare<[number: number, a: number, b: number, c: number]>("syscall", "long", ["long", "long", "long", "long"]),
  getgroups: declare<[size: number, groups: Uint32Array]>("getgroups", "int", ["int", "void *"]),
  setgroups: declare<[number: number, count: number, groups: Uint32Array]>("syscall", "long", ["long", "size_t", "void *"]),
  /** Both `capget` and `capset`. */
  capabilities: declare<[number: number, header: Uint32Array, sets: Uint32Array]>("syscall", "long", [
    "long",
    "void *",
    "void *",
  ]),
  landlock_create_ruleset: declare<[number: number, attributes: BigUint64Array | null, size: number, flags: number]>(
    "syscall",
    "long",
    ["long", "void *", "size_t", "uint"],
  ),
  landlock_add_rule: declare<[number: number, ruleset: number, type: number, rule: Uint8Array, flags: number]>(
    "syscall",
    "long",
    ["long", "int", "int", "void *", "uint"],
  ),
  seccomp: declare<[number: number, operation: number, flags: number, program: { length: number; filter: Uint8Array }]>(
    "syscall",
    "long",
    ["long", "uint", "uint", koffi.pointer(filterProgram)],
  ),
  open_tree: declare<[number: number, dirfd: number, path: string, flags: number]>("syscall", "long", [
    "long",
    "int",
    "str",
    "uint",
  ]),
  move_mount: declare<[number: number, fromDirfd: number, from: string, toDirfd: number, to: string, flags: number]>(
    "syscall",
    "long",
    ["long", "int", "str", "int", "str", "uint"],
  ),
  mount_setattr: declare<[number: number, dirfd: number, path: string, flags: number, attributes: BigUint64Array, size: number]>(
    "syscall",
    "long",
    ["long", "int", "str", "uint", "void *", "size_t"],
  ),
  socket: declare<[domain: number, type: number, protocol: number]>("socket", "int", ["int", "int", "int"]),
  bind: declare<[fd: number, address: Uint8Array, size: number]>("bind", "int", ["int", "void *", "uint"]),
  listen: declare<[fd: number, backlog: number]>("listen", "int", ["int", "int"]),
  openat2: declare<[number: number, dirfd: number, path: Path, how: BigUint64Array, size: number]>("syscall", "long", [
    "long",
    "int",
    "str",
    "void *",
    "size_t",
  ]),
};

/**
 * Makes a call on a thread of the pool; resolves with its result, and its errno where that is negative. Threads have the daemon's own rights:
 * only for calls that work on descriptors, or that need no other rights. Typed arrays must be larger than 64 bytes: V8 moves small ones.
 */
export function onThread<Arguments extends unknown[]>(
  call: (...args: Arguments) => number,
  ...args: Arguments
): Promise<[result: number, errno: number]> {
  return new Promise((resolve, reject) => {
    (call as unknown as { async(...args: unknown[]): void }).async(...args, (error: unknown, result: number) => {
      if (error) reject(error);
      else resolve([result, result < 0 ? koffi.errno() : 0]);
    });
  });
}

/** errno of the call before this one. */
export function errno(): number {
  return koffi.errno();
}
