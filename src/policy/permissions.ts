import type { Requirement } from "../auth/scopes.js";
import type { Capability } from "./capability.js";

/** What a capability may grant. */
export type Permission = "filesystem.read" | "filesystem.write" | "shell";

/**
 * What each scope needs of a capability: one of these. What touches neither files nor processes needs none; a caller without any capability
 * may do nothing but what is public all the same.
 */
export const NEEDED_PERMISSIONS: Readonly<Record<Requirement, readonly Permission[]>> = {
  "files:read": ["filesystem.read"],
  "files:write": ["filesystem.write"],
  files: ["filesystem.read", "filesystem.write"],
  process: ["shell"],
  "process:read": ["shell"],
  admin: [],
  any: [],
  public: [],
};

/** The permission that a capability lacks for a requirement; undefined when it has what it takes: one of those that are needed. */
export function missingPermission(capability: Capability, requirement: Requirement): Permission | undefined {
  const needed = NEEDED_PERMISSIONS[requirement];
  return needed.length === 0 || needed.some((permission) => grants(capability, permission)) ? undefined : needed[0];
}

/** Which of the paths, and which of the commands, is decided where they are opened and run. */
function grants({ filesystem, shell }: Capability, permission: Permission): boolean {
  if (permission === "shell") return shell !== undefined;
  const paths = permission === "filesystem.read" ? filesystem?.readPaths : filesystem?.writePaths;
  return paths !== undefined && paths.length > 0;
}
