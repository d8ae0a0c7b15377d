import { realpathSync } from "node:fs";
import { withFileRightsOf } from "../os/credentials.js";
import type { User } from "../os/users.js";
import type { Capability } from "../policy/capability.js";
import type { LineRules, Objection } from "../policy/commands/judge-line.js";
import { locateProgram } from "../policy/commands/program-lookup.js";
import { mayBeSet } from "../policy/commands/variables.js";
import type { Confinement } from "../policy/confinement.js";
import { covers, type Hierarchy, toHierarchies } from "../policy/hierarchy.js";
import { policyDenied } from "../policy/policy-denied.js";
import { isUnconfined } from "../policy/unconfined.js";
import type { Command, ResourceLimits } from "./command.js";

/** @throws POLICY_DENIED for a capability without commands, or a variable that it does not let a request set. */
export function permitEnvironment(capability: Capability, requested: Readonly<Record<string, string>>): void {
  const { shell } = capability;
  if (shell === undefined) throw policyDenied(capability, "shell", "commands", "it grants none");
  const refused = Object.keys(requested).find((name) => !mayBeSet(name, shell.env ?? []));
  if (refused !== undefined) throw policyDenied(capability, "shell.env", refused, "shell.env does not let a request set it");
}

/** `working_directory` for a user with that home directory. */
export function workingDirectoryOf({ shell }: Capability, home: string): string | undefined {
  return shell?.workingDirectory === undefined ? undefined : toHierarchies([shell.workingDirectory], home)[0]?.path;
}

/**
 * Where a command starts: the directory as the kernel has found it, which must be within `working_directory`, or else where files may
 * be read; a default that is not becomes the root. Commands are held to their files wherever they are: this keeps them where they are
 * meant to work. @throws POLICY_DENIED.
 */
export function permitDirectory(
  capability: Capability,
  { path, isAsked }: { path: string; isAsked: boolean },
  user: User,
): string {
  const { filesystem, shell } = capability;
  const real = withFileRightsOf({ user }, () => realpathSync(path));
  const { workingDirectory } = shell ?? {};
  const within = workingDirectoryOf(capability, user.home);
  const allowed = workingDirectory === undefined ? toHierarchies(filesystem?.readPaths ?? [], user.home) : wholeOf(within);
  if (allowed.some((hierarchy) => covers(hierarchy, real))) return real;
  if (workingDirectory !== undefined) {
    throw policyDenied(capability, "shell.working_directory", real, `it is not within ${workingDirectory}`);
  }
  if (!isAsked) return "/";
  throw policyDenied(capability, "filesystem.read_paths", real, "commands start where files may be read");
}

/** Nothing when it is in the home of somebody who has none. */
function wholeOf(path: string | undefined): Hierarchy[] {
  return path === undefined ? [] : [{ path, isWhole: true }];
}

/** @throws POLICY_DENIED for a program or a line that would run what `allowed_commands` does not have. */
export function permitCommand(
  capability: Capability,
  confinement: Confinement,
  command: Command,
  shell: string,
  path: string,
): void {
  const allowedCommands = capability.shell?.allowedCommands;
  if (allowedCommands === undefined) return;
  const rules = lineRules(capability, allowedCommands, confinement, path);
  const objection = judge(command, shell, rules);
  if (objection === undefined) return;
  throw policyDenied(capability, "shell.allowed_commands", objection.part, objection.why);
}

function judge(command: Command, shell: string, rules: LineRules): Objection | undefined {
  // The parser is a file of its own, which the build puts beside the daemon.
  const { judgeLine, judgeWords } = require("judge-line") as typeof import("../policy/commands/judge-line.js");
  if ("argv" in command) return judgeWords(command.argv, rules);
  if (command.line === undefined || !rules.isShell(shell)) return judgeWords([shell], rules);
  return judgeLine(command.line, rules);
}

function lineRules(
  capability: Capability,
  allowedCommands: readonly string[],
  confinement: Confinement,
  path: string,
): LineRules {
  // Names of the policy mean the daemon's own PATH, whatever a command's is.
  const allowed = new Set(allowedCommands.map((name) => locateProgram(name, confinement.path)));
  const shells = new Set(confinement.shells.filter(isPosixShell).map((name) => locateProgram(name, path)));
  const at = (name: string) => locateProgram(name, path);
  return {
    isAllowed: (name) => at(name) !== undefined && allowed.has(at(name)),
    isProgram: (name) => at(name) !== undefined,
    isShell: (name) => at(name) !== undefined && shells.has(at(name)),
    mayExport: (name) => mayBeSet(name, capability.shell?.env ?? []),
  };
}

/** Those whose language the parser knows. */
function isPosixShell(path: string): boolean {
  return /(?:^|\/)(?:ba|da|a)?sh$/.test(path);
}

/** The limits of a command, no file larger than the capability lets anybody make one. */
export function permitLimits(capability: Capability | undefined, limits: ResourceLimits): ResourceLimits {
  const { maxFileSizeBytes } = capability?.limits ?? {};
  if (maxFileSizeBytes === undefined) return limits;
  const most = BigInt(maxFileSizeBytes);
  const { fileSizeBytes = most } = limits;
  return { ...limits, fileSizeBytes: fileSizeBytes < most ? fileSizeBytes : most };
}

/** The milliseconds that a command may take. @param askedMs 0: no limit. @throws POLICY_DENIED when it asks for more than there is. */
export function permitTimeout(capability: Capability | undefined, askedMs: number | undefined, defaultMs: number): number {
  const { timeoutSeconds } = capability?.limits ?? {};
  if (capability === undefined || timeoutSeconds === undefined) return askedMs ?? defaultMs;
  const limitMs = timeoutSeconds * 1000;
  if (askedMs === undefined) return defaultMs === 0 ? limitMs : Math.min(defaultMs, limitMs);
  if (askedMs > limitMs) {
    const why = `limits.timeout_seconds is ${timeoutSeconds}`;
    throw policyDenied(capability, "limits.timeout_seconds", `${askedMs / 1000} seconds`, why);
  }
  return askedMs === 0 ? limitMs : askedMs;
}

/** What is the same for everybody with that capability: whose a process is. */
export function ownerOf(capability: Capability | undefined): string | undefined {
  return capability?.name;
}

/** Whether somebody with that capability may look at and act on what was started with another one, or with none. */
export function mayUse(capability: Capability | undefined, owner: string | undefined): boolean {
  return capability === undefined || isUnconfined(capability) || capability.name === owner;
}

/** @throws POLICY_DENIED. */
export function assertMayUse(
  capability: Capability | undefined,
  process: { readonly id: string; readonly owner: string | undefined },
): void {
  if (capability === undefined || mayUse(capability, process.owner)) return;
  throw policyDenied(capability, "shell", process.id, "that process was started with another capability");
}
