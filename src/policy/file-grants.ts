import { FILE_RIGHT } from "../os/landlock.js";
import type { Capability } from "./capability.js";
import { executedFiles, locateProgram } from "./commands/program-lookup.js";
import { covers, type Hierarchy, toHierarchies } from "./hierarchy.js";
import { policyDenied } from "./policy-denied.js";
import type { SystemFiles } from "./system-files.js";

/** What a confined command may do with one file or directory and all below it. */
export interface FileGrant {
  readonly path: string;
  readonly rights: bigint;
  /** Of the policy: it must be where its name says, and a directory only where all below it is meant. */
  readonly ofPolicy?: "exact" | "whole";
  /** It may be executed because `allowed_commands` needs it. */
  readonly isProgram?: true;
}

export interface ProgramSearch {
  readonly home: string;
  /** The daemon's PATH. */
  readonly path: string;
  /** Those that lines and limits are run with. */
  readonly shells: readonly string[];
  readonly system: SystemFiles;
}

const { execute, readFile, readDirectory, writeFile, truncate, ioctlDevice } = FILE_RIGHT;
const READ = readFile | readDirectory;
/** All but making devices. */
const WRITE =
  writeFile |
  truncate |
  FILE_RIGHT.removeDirectory |
  FILE_RIGHT.removeFile |
  FILE_RIGHT.makeDirectory |
  FILE_RIGHT.makeRegular |
  FILE_RIGHT.makeSocket |
  FILE_RIGHT.makeFifo |
  FILE_RIGHT.makeSymbolicLink |
  FILE_RIGHT.refer;

/** Libraries and what programs bring along, without any program by itself. */
const LIBRARIES = ["/lib", "/lib32", "/lib64", "/libx32"].concat(
  ["lib", "lib32", "lib64", "libexec", "include", "share"].map((name) => `/usr/${name}`),
  ["lib", "libexec", "include", "share"].map((name) => `/usr/local/${name}`),
);
const PROGRAMS = ["/bin", "/sbin", "/usr"];

/** What bash, git, python, node and make ask for on their way, none of it a secret. Paths that are missing are left out. */
const SYSTEM_FILES = [
  "alternatives",
  "bash.bashrc",
  "ca-certificates",
  "gai.conf",
  "gitconfig",
  "host.conf",
  "hosts",
  "inputrc",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "nsswitch.conf",
  "os-release",
  "pki/tls/certs",
  "profile",
  "profile.d",
  "protocols",
  "resolv.conf",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
].map((name) => `/etc/${name}`);
/** Of the whole machine; nothing of any process, itself included. */
const KERNEL_FILES = [
  ...["cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version"].map((name) => `/proc/${name}`),
  ...["kernel/osrelease", "kernel/ostype", "kernel/pid_max", "vm/overcommit_memory"].map((name) => `/proc/sys/${name}`),
  "/sys/devices/system/cpu",
];
const READABLE_DEVICES = ["/dev/random", "/dev/urandom"];
/** The last is the terminal of whoever opens it. */
const DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

/** All that is granted whatever a policy says: see `SystemFiles`. */
export const SYSTEM_PATHS = [...LIBRARIES, ...PROGRAMS, ...SYSTEM_FILES, ...KERNEL_FILES, ...READABLE_DEVICES, ...DEVICES];

/** The files that commands of a capability may use, whatever they are. @throws POLICY_DENIED: see `programGrants`, `assertKept`. */
export function fileGrants(capability: Capability, search: ProgramSearch): FileGrant[] {
  const limited = capability.shell?.allowedCommands !== undefined;
  const executable = limited ? 0n : execute;
  const grant = (paths: readonly string[], rights: bigint): FileGrant[] => paths.map((path) => ({ path, rights }));
  const system = [
    ...grant(LIBRARIES, READ | executable),
    ...(limited ? [] : grant(PROGRAMS, READ | execute)),
    ...grant([...SYSTEM_FILES, ...KERNEL_FILES], READ),
    ...grant(READABLE_DEVICES, readFile),
    ...grant(DEVICES, readFile | writeFile | ioctlDevice),
  ];
  const ofPolicy = [
    ...policyGrants(capability.filesystem?.readPaths ?? [], search.home, READ | executable | ioctlDevice),
    ...policyGrants(capability.filesystem?.writePaths ?? [], search.home, WRITE | ioctlDevice),
  ];
  const programs = limited ? programGrants(capability, search) : [];
  assertKept(capability, system, ofPolicy, search);
  return [...system, ...programs, ...ofPolicy];
}

/**
 * @throws POLICY_DENIED when the capability may put a link in place of what the system grants it, and with that grant itself what it does not
 * have. Who has the whole tree gains nothing.
 */
function assertKept(
  capability: Capability,
  system: readonly FileGrant[],
  ofPolicy: readonly FileGrant[],
  search: ProgramSearch,
): void {
  const everywhere = ofPolicy.reduce(
    (rights, grant) => (grant.path === "/" && grant.ofPolicy === "whole" ? rights | grant.rights : rights),
    0n,
  );
  const writable = toHierarchies(capability.filesystem?.writePaths ?? [], search.home);
  for (const { path, rights } of system) {
    if ((rights & ~everywhere) === 0n) continue;
    const names = [path, search.system.realPathOf(path) ?? path].flatMap(directoriesTo);
    const replaceable = names.find((name) => writable.some((each) => mayReplace(each, name)));
    if (replaceable === undefined) continue;
    const why = `commands are granted ${path}, and write_paths let something else be put in its place`;
    throw policyDenied(capability, "filesystem.write_paths", replaceable, why);
  }
}

/** Itself, and all that it is in but the root. */
function directoriesTo(path: string): string[] {
  const names = path.split("/").slice(1);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}

/** A whole directory stands for what is in it, not for itself. */
function mayReplace(hierarchy: Hierarchy, path: string): boolean {
  return covers(hierarchy, path) && (!hierarchy.isWhole || path !== hierarchy.path);
}

/** The other side of a terminal, for the program on it. */
export function terminalGrant(path: string): FileGrant {
  return { path, rights: readFile | writeFile | ioctlDevice };
}

function policyGrants(globs: readonly string[], home: string, rights: bigint): FileGrant[] {
  return toHierarchies(globs, home).map(({ path, isWhole }) => ({ path, rights, ofPolicy: isWhole ? "whole" : "exact" }));
}

/** @throws POLICY_DENIED when the capability may write what it may execute: it would decide itself what that is. */
function programGrants(capability: Capability, { home, path, shells }: ProgramSearch): FileGrant[] {
  const writable = toHierarchies(capability.filesystem?.writePaths ?? [], home);
  const listed = capability.shell?.allowedCommands ?? [];
  const programs = listed.map((name) => locateProgram(name, path));
  const executed = [...shells, ...programs].flatMap((program) => (program === undefined ? [] : executedFiles(program, path)));
  const names = [...executed.flatMap(({ file, links }) => [file, ...links]), ...listed];
  const changeable = names.find((name) => writable.some((each) => covers(each, name)));
  if (changeable !== undefined) {
    throw policyDenied(capability, "shell.allowed_commands", changeable, "it may be executed, and write_paths let it be changed");
  }
  const files = new Set(executed.map(({ file }) => file));
  return [...files].map((file) => ({ path: file, rights: readFile | execute, isProgram: true }));
}
