import { libc, SYSCALL } from "./libc.js";
import { check } from "./system-error.js";

/** Access rights to files, linux/landlock.h. */
export const FILE_RIGHT = {
  execute: 1n << 0n,
  writeFile: 1n << 1n,
  readFile: 1n << 2n,
  readDirectory: 1n << 3n,
  removeDirectory: 1n << 4n,
  removeFile: 1n << 5n,
  makeCharacterDevice: 1n << 6n,
  makeDirectory: 1n << 7n,
  makeRegular: 1n << 8n,
  makeSocket: 1n << 9n,
  makeFifo: 1n << 10n,
  makeBlockDevice: 1n << 11n,
  makeSymbolicLink: 1n << 12n,
  refer: 1n << 13n,
  truncate: 1n << 14n,
  ioctlDevice: 1n << 15n,
} as const;

const { execute, writeFile, readFile, truncate, ioctlDevice } = FILE_RIGHT;
/** Those that a rule for something other than a directory may have. */
export const RIGHTS_OF_A_FILE = execute | writeFile | readFile | truncate | ioctlDevice;
/** How many bits of file rights each version of the interface knows, beginning with version 1. */
const RIGHT_BITS_OF_ABI = [13n, 14n, 15n, 15n, 16n];
const SCOPE_ABSTRACT_UNIX_SOCKET = 1n << 0n;
const SCOPE_SIGNAL = 1n << 1n;
const ABI_OF_SCOPES = 6;

const CREATE_RULESET_VERSION = 1;
const RULE_PATH_BENEATH = 1;
const PR_SET_NO_NEW_PRIVS = 38;

/** What lies at or below an opened file or directory (O_PATH suffices) may be used in these ways. */
export interface PathRule {
  readonly fd: number;
  readonly rights: bigint;
}

/** Version of Landlock in this kernel; 0 where there is none, or it is not switched on. */
export function landlockAbi(): number {
  return Math.max(0, libc.landlock_create_ruleset(SYSCALL.landlock_create_ruleset, null, 0, CREATE_RULESET_VERSION));
}

/**
 * Confines the calling thread, and all that it starts from now on, forever: of files, what the rules grant; signals and abstract
 * unix sockets reach only what is confined with it, from version 6 on; no program gives new privileges (setuid, file
 * capabilities). @throws the errno of landlock(7), EOPNOTSUPP or ENOSYS where the kernel has none.
 */
export function confineThread(rules: readonly PathRule[], abi: number): void {
  const rights = (1n << (RIGHT_BITS_OF_ABI[abi - 1] ?? RIGHT_BITS_OF_ABI.at(-1) ?? 0n)) - 1n;
  const scoped = abi >= ABI_OF_SCOPES ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0n;
  // struct landlock_ruleset_attr: files, network, scopes. An old kernel takes a longer one when the rest is 0.
  const attributes = BigUint64Array.of(rights, 0n, scoped);
  const call = SYSCALL.landlock_create_ruleset;
  const ruleset = check(libc.landlock_create_ruleset(call, attributes, attributes.byteLength, 0), "landlock_create_ruleset");
  try {
    for (const rule of rules) addRule(ruleset, { ...rule, rights: rule.rights & rights });
    check(libc.prctlStrict(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)");
    check(libc.syscall3(SYSCALL.landlock_restrict_self, ruleset, 0, 0), "landlock_restrict_self");
  } finally {
    // Not by node:fs, which warns of descriptors that it has not opened in this thread.
    libc.close(ruleset);
  }
}

function addRule(ruleset: number, { fd, rights }: PathRule): void {
  if (rights === 0n) return;
  // struct landlock_path_beneath_attr, packed.
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(rights);
  rule.writeInt32LE(fd, 8);
  check(libc.landlock_add_rule(SYSCALL.landlock_add_rule, ruleset, RULE_PATH_BENEATH, rule, 0), "landlock_add_rule");
}
