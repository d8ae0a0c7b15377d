import { closeSync } from "node:fs";
import { ConfinedThread } from "../os/confined-thread.js";
import { landlockAbi } from "../os/landlock.js";
import { describeErrno } from "../os/system-error.js";
import type { Capability } from "./capability.js";
import { fileGrants, type ProgramSearch } from "./file-grants.js";
import { toHierarchy } from "./hierarchy.js";
import { hasWholeNetwork, isUnconfined } from "./unconfined.js";

/** The first that confines signals and abstract unix sockets: Linux 6.12. Without it, commands reach the processes of others. */
const REQUIRED_ABI = 6;

/**
 * Refuses what could not be held to: a policy that says more than the kernel or the daemon's rights can do is no policy. To be called
 * when a policy is loaded, at start and again. Returns what is not held to all the same. @throws Error that names the capability and
 * what is missing.
 */
export function assertEnforceable(capabilities: Iterable<Capability>, search: ProgramSearch): string | undefined {
  const confined = [...capabilities].filter((capability) => capability.shell !== undefined && !isUnconfined(capability));
  for (const capability of confined) {
    assertHierarchies(capability);
    fileGrants(capability, search);
  }
  const [first] = confined;
  if (first === undefined) return undefined;
  const abi = landlockAbi();
  if (abi < REQUIRED_ABI) {
    const has = abi === 0 ? "no Landlock, or it is not switched on (lsm= of its command line)" : `Landlock ABI ${abi}`;
    throw refusal(first, `its commands cannot be confined: this kernel has ${has}; ABI ${REQUIRED_ABI} is needed: Linux 6.12`);
  }
  const isolated = confined.find((capability) => !hasWholeNetwork(capability));
  if (assertThread(isolated ?? first, isolated !== undefined)) return undefined;
  return "commands may change modes, owners, times and extended attributes outside of write_paths, and use shared memory of System V: without CAP_SYS_ADMIN they have no mounts and no IPC of their own";
}

const NEW_NETWORK = { kind: "new", listenPort: undefined } as const;

/** Does what it would do, once. Returns whether all that is not granted is read-only. */
function assertThread(capability: Capability, isolated: boolean): boolean {
  try {
    const thread = new ConfinedThread({ network: isolated ? NEW_NETWORK : undefined, writable: [] });
    thread.confine([]);
    if (isolated) closeSync(thread.network.fd);
    thread.close();
    return thread.isReadOnly;
  } catch (error) {
    const { message } = error as Error;
    const why = (error as NodeJS.ErrnoException).errno === undefined ? message : `${message}: ${describeErrno(error as Error)}`;
    const remedy = isolated ? '; a network of its own needs CAP_SYS_ADMIN; allowed_domains = ["*"] needs none' : "";
    throw refusal(capability, `its commands cannot be confined: ${why}${remedy}`);
  }
}

function assertHierarchies(capability: Capability): void {
  const { readPaths = [], writePaths = [] } = capability.filesystem ?? {};
  const unknown = [...readPaths, ...writePaths].find((glob) => toHierarchy(glob, "/") === undefined);
  if (unknown === undefined) return;
  const why = "with a shell permission the kernel holds commands to its paths, and it knows DIR/** and exact paths alone";
  throw refusal(capability, `permissions.filesystem: ${JSON.stringify(unknown)}: ${why}`);
}

function refusal({ name }: Capability, why: string): Error {
  return new Error(`capability ${name}: ${why}`);
}
