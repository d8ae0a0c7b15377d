import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** State of a listening socket in /proc/net/tcp. */
const LISTEN = "0A";

/** TCP ports of IPv4 that a process listens on. */
export function listeningPorts(pid: number): number[] {
  const sockets = readdirSync(`/proc/${pid}/fd`).map((fd) => linkTarget(`/proc/${pid}/fd/${fd}`));
  return readFileSync(`/proc/${pid}/net/tcp`, "latin1")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN && sockets.includes(`socket:[${inode}]`))
    .map(([, address]) => Number.parseInt(address?.split(":")[1] ?? "", 16));
}

function linkTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed meanwhile.
    return "";
  }
}
