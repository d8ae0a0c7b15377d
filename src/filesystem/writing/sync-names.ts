import { close, constants, fsync } from "node:fs";
import { posix } from "node:path";
import { promisify } from "node:util";
import { openIn } from "../../os/root.js";
import type { Access } from "../access.js";
import type { WriteTarget } from "./write-target.js";

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY;

/**
 * fsync(2) of the directory that holds the name, and, innermost first, of those that hold the names of directories that were made
 * on the way: a file survives a power loss only together with all of them.
 */
export async function syncNames(access: Access, target: Pick<WriteTarget, "directoryFd" | "madeDirectories">): Promise<void> {
  // The directory was opened for naming only, and such a descriptor cannot be synced.
  await syncAndClose(openIn(target.directoryFd, ".", DIRECTORY));
  for (const made of target.madeDirectories.toReversed())
    await syncAndClose(access.root.open(posix.dirname(made), DIRECTORY, 0, "pass"));
}

async function syncAndClose(directoryFd: number): Promise<void> {
  try {
    await promisify(fsync)(directoryFd);
  } finally {
    close(directoryFd, () => undefined);
  }
}
