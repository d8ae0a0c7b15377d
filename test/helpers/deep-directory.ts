import { closeSync, constants } from "node:fs";
import { makeDirectoryIn, O_PATH, openIn, Root } from "../../src/os/root.js";

/** Makes directories `d` one within the other, each with an `e` beside it; by descriptor, for no system call takes so long a path. */
export function makeDeep(directory: string, levels: number): void {
  let fd = new Root("/").open(directory, O_PATH | constants.O_DIRECTORY);
  for (let level = 0; level < levels; level++) {
    makeDirectoryIn(fd, "d", 0o755);
    makeDirectoryIn(fd, "e", 0o755);
    const below = openIn(fd, "d", O_PATH);
    closeSync(fd);
    fd = below;
  }
  closeSync(fd);
}
