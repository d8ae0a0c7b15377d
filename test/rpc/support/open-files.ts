import { openDescriptors } from "../../helpers/open-descriptors.js";
import type { Daemon } from "../../helpers/start-daemon.js";

/** Descriptors of the daemon for files in a directory, those without a name included. */
export function openFilesIn(daemon: Daemon, directory: string): string[] {
  return openDescriptors(daemon.pid)
    .map(({ target }) => target)
    .filter((target) => target.startsWith(directory));
}
