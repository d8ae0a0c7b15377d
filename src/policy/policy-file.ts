import { ConfigError } from "../auth/token.js";
import { readConfigFile } from "../config-file.js";
import type { Capability, CapabilityLimits, FilesystemPermissions, NetworkPermissions, ShellPermissions } from "./capability.js";
import { isListable } from "./network/domain-list.js";
import { PathGlob } from "./path-glob.js";
import { EVERY_USER } from "./permit-user.js";
import { PolicyTable } from "./policy-table.js";
import { WHOLE_NETWORK } from "./unconfined.js";

const MAX_POLICY_FILE_BYTES = 1024 * 1024;
const NAME = /^[\w.-]{1,64}$/;
const VARIABLE = /^([A-Za-z_]\w*\*?|\*)$/;

/** What a policy file says. */
export interface ParsedPolicy {
  readonly capabilities: ReadonlyMap<string, Capability>;
  /** Of the daemon's own token; undefined: it may do nothing. */
  readonly daemonToken: string | undefined;
  /** Of whoever comes in without a token, where none is asked for; undefined: they may do nothing. */
  readonly noAuth: string | undefined;
}

export interface PolicyFile extends ParsedPolicy {
  /** Anybody in the sandbox could change it. */
  readonly worldWritable: boolean;
}

/** @throws ConfigError naming the file, the table and the key; nothing of a broken file counts. */
export async function readPolicyFile(path: string): Promise<PolicyFile> {
  const { text, worldWritable } = readConfigFile(path, "the policy", MAX_POLICY_FILE_BYTES);
  try {
    return { ...(await parsePolicy(text)), worldWritable };
  } catch (error) {
    throw new ConfigError(`invalid policy file ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** @throws Error naming the table and the key. */
export async function parsePolicy(text: string): Promise<ParsedPolicy> {
  // Loaded with the first policy: most daemons never see one.
  const { parse } = await import("smol-toml");
  const file = new PolicyTable("", parse(text), ["daemon_token", "no_auth", "capabilities"]);
  const tables = file.table("capabilities");
  const capabilities = new Map(tables.keys.map((name) => [name, parseCapability(name, tables)]));
  const known = (name: string): string => {
    if (capabilities.has(name)) return name;
    throw new Error(`there is no such capability; there are ${[...capabilities.keys()].join(", ") || "none"}`);
  };
  return { capabilities, daemonToken: file.text("daemon_token", known), noAuth: file.text("no_auth", known) };
}

function parseCapability(name: string, tables: PolicyTable): Capability {
  if (!NAME.test(name)) throw tables.wrong(JSON.stringify(name), "expected 1 to 64 of the characters A-Z a-z 0-9 _ . -");
  const table = tables.table(name, ["permissions", "limits"]);
  const permissions = table.table("permissions", ["users", "filesystem", "shell", "network"]);
  return {
    name,
    ...parseUsers(permissions),
    shell: permissions.has("shell") ? parseShell(permissions) : undefined,
    network: parseNetwork(permissions),
    limits: parseLimits(table),
  };
}

/** A `~` that may be the home of everybody would be chosen by the caller: homes like /bin and /dev among them. */
function parseUsers(permissions: PolicyTable): Pick<Capability, "users" | "filesystem"> {
  const users = permissions.texts("users", (text) =>
    expected(/^[^\0:/\n]+$/.test(text), text, "a name or a number of a user, or *"),
  );
  const filesystem = permissions.has("filesystem") ? parseFilesystem(permissions) : undefined;
  const { readPaths = [], writePaths = [] } = filesystem ?? {};
  const ofHome = [...readPaths, ...writePaths].find((text) => text.startsWith("~"));
  if (users?.includes(EVERY_USER) && ofHome !== undefined)
    throw permissions.wrong("users", `* does not go with ${JSON.stringify(ofHome)}: name the users whose homes are meant`);
  return { users: users ?? [], filesystem };
}

function parseFilesystem(permissions: PolicyTable): FilesystemPermissions {
  const table = permissions.table("filesystem", ["read_paths", "write_paths"]);
  return { readPaths: table.texts("read_paths", glob) ?? [], writePaths: table.texts("write_paths", glob) ?? [] };
}

function parseShell(permissions: PolicyTable): ShellPermissions {
  const table = permissions.table("shell", ["allowed_commands", "working_directory", "env"]);
  return {
    allowedCommands: table.texts("allowed_commands", command),
    workingDirectory: table.text("working_directory", directory),
    env: table.texts("env", (text) => expected(VARIABLE.test(text), text, "a name, or the beginning of one with a * behind it")),
  };
}

function parseNetwork(permissions: PolicyTable): NetworkPermissions {
  const table = permissions.table("network", ["allowed_domains"]);
  const what = "a name of a host in lower case, *.example.org, an address, one of these with :port, or *";
  return {
    allowedDomains:
      table.texts("allowed_domains", (text) => expected(text === WHOLE_NETWORK || isListable(text), text, what)) ?? [],
  };
}

function parseLimits(capability: PolicyTable): CapabilityLimits {
  const table = capability.table("limits", ["timeout_seconds", "max_file_size_bytes", "max_files", "max_processes"]);
  return {
    timeoutSeconds: table.number("timeout_seconds", { integer: false, min: 0.001 }),
    maxFileSizeBytes: table.number("max_file_size_bytes", { integer: true, min: 0 }),
    maxFiles: table.number("max_files", { integer: true, min: 0 }),
    maxProcesses: table.number("max_processes", { integer: true, min: 0 }),
  };
}

function glob(text: string): string {
  // Wherever the home is: it changes nothing of the form.
  new PathGlob(withoutNul(text), "/");
  return text;
}

/** A name that is looked up, or the path of a file. */
function command(text: string): string {
  withoutNul(text);
  const isClean = !text.split("/").some((name, index) => (name === "" && index > 0) || name === "." || name === "..");
  return expected(isClean && (text.startsWith("/") || (!text.includes("/") && text !== "")), text, "a name, or an absolute path");
}

function directory(text: string): string {
  return expected(/^(\/|~(\/|$))/.test(withoutNul(text)), text, 'a path that begins with "/" or "~/"');
}

function withoutNul(text: string): string {
  return expected(!text.includes("\0"), text, "no NUL");
}

function expected(isRight: boolean, text: string, what: string): string {
  if (isRight) return text;
  throw new Error(`expected ${what}`);
}
