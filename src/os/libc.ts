import koffi from "koffi";

/**
 * The C library calls that Node does not offer, each with its one signature. A wrong signature is a crash, not an exception:
 * every line here is called for real by test/os.
 *
 * `load(null)` takes the symbols of the running program, which is linked to its libc whatever that is called (glibc, musl).
 */
const library = koffi.load(null);

/** Raw system call numbers that differ between the two supported architectures, then those that do not. */
const numbers =
  process.arch === "arm64"
    ? { setresuid: 147, setresgid: 149, setfsuid: 151, setfsgid: 152, setgroups: 159 }
    : { setresuid: 117, setresgid: 119, setfsuid: 122, setfsgid: 123, setgroups: 116 };

export const SYSCALL = { ...numbers, openat2: 437 } as const;

type Bytes = Uint8Array | Int32Array | Uint32Array | BigUint64Array;

function declare<Arguments extends unknown[], Result = number>(name: string, result: string, parameters: string[]) {
  return library.func(name, result, parameters) as unknown as (...args: Arguments) => Result;
}

export const libc = {
  pipe2: declare<[fds: Int32Array, flags: number]>("pipe2", "int", ["void *", "int"]),
  fcntl: declare<[fd: number, command: number, argument: number]>("fcntl", "int", ["int", "int", "int"]),
  ioctl: declare<[fd: number, request: number, argument: Bytes | Uint16Array]>("ioctl", "int", ["int", "ulong", "void *"]),
  prctl: declare<[option: number, argument: number]>("prctl", "int", ["int", "long"]),
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
  memset: declare<[address: bigint, byte: number, length: number], bigint>("memset", "uintptr_t", ["uintptr_t", "int", "size_t"]),

  openat: declare<[dirfd: number, path: string, flags: number, mode: number]>("openat", "int", ["int", "str", "int", "uint"]),
  mkdirat: declare<[dirfd: number, path: string, mode: number]>("mkdirat", "int", ["int", "str", "uint"]),
  unlinkat: declare<[dirfd: number, path: string, flags: number]>("unlinkat", "int", ["int", "str", "int"]),
  renameat: declare<[fromDirfd: number, from: string, toDirfd: number, to: string]>("renameat", "int", [
    "int",
    "str",
    "int",
    "str",
  ]),
  renameat2: declare<[fromDirfd: number, from: string, toDirfd: number, to: string, flags: number]>("renameat2", "int", [
    "int",
    "str",
    "int",
    "str",
    "uint",
  ]),
  linkat: declare<[fromDirfd: number, from: string, toDirfd: number, to: string, flags: number]>("linkat", "int", [
    "int",
    "str",
    "int",
    "str",
    "int",
  ]),
  readlinkat: declare<[dirfd: number, path: string, buffer: Bytes, size: number]>("readlinkat", "long", [
    "int",
    "str",
    "void *",
    "size_t",
  ]),

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
  openat2: declare<[number: number, dirfd: number, path: string, how: BigUint64Array, size: number]>("syscall", "long", [
    "long",
    "int",
    "str",
    "void *",
    "size_t",
  ]),
};

/** errno of the call before this one. */
export function errno(): number {
  return koffi.errno();
}
