import { readFileSync } from "node:fs";
import { openDescriptors } from "./open-descriptors.js";

/** State of a listening socket in /proc/net/tcp. */
const LISTEN = "0A";

/** TCP ports of IPv4 that a process listens on. */
export function listeningPorts(pid: number): number[] {
  const sockets = openDescriptors(pid).map(({ target }) => target);
  return readFileSync(`/proc/${pid}/net/tcp`, "latin1")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN && sockets.includes(`socket:[${inode}]`))
    .map(([, address]) => Number.parseInt(address?.split(":")[1] ?? "", 16));
}
