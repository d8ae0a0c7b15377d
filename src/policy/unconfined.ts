import type { Capability } from "./capability.js";

/** Everything there is: `/**` may be read and written. */
const EVERYTHING = "/**";
export const WHOLE_NETWORK = "*";

export function hasWholeNetwork({ network }: Capability): boolean {
  return network.allowedDomains.includes(WHOLE_NETWORK);
}

/** Whether nothing is left for the kernel to hold commands of this capability to: all files, all programs, the whole network. */
export function isUnconfined(capability: Capability): boolean {
  const { filesystem, shell } = capability;
  const [reads, writes] = [filesystem?.readPaths ?? [], filesystem?.writePaths ?? []];
  const allFiles = reads.includes(EVERYTHING) && writes.includes(EVERYTHING);
  return allFiles && shell !== undefined && shell.allowedCommands === undefined && hasWholeNetwork(capability);
}
