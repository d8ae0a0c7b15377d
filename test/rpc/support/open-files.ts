import { readdirSync, readlinkSync } from "node:fs";
import type { Daemon } from "../../helpers/start-daemon.js";

/** Descriptors of the daemon for files in a directory, those without a name included. */
export function openFilesIn(daemon: Daemon, directory: string): string[] {
  return readdirSync(`/proc/${daemon.pid}/fd`)
    .map((fd) => targetOf(`/proc/${daemon.pid}/fd/${fd}`))
    .filter((target) => target.startsWith(directory));
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    // It was closed while the list was read.
    return "";
  }
}
