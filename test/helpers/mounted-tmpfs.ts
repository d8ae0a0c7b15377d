import { execFileSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { type TemporaryDirectory, temporaryDirectory } from "./temporary-directory.js";

/** A file system of its own: `size=64k`, `nr_inodes=8`. Unmounted afterwards. Use with `using`. */
export function mountedTmpfs(options = ""): TemporaryDirectory {
  const directory = temporaryDirectory();
  execFileSync("mount", ["-t", "tmpfs", ...(options === "" ? [] : ["-o", options]), "tmpfs", directory.path]);
  chmodSync(directory.path, 0o755);
  return {
    path: directory.path,
    [Symbol.dispose]() {
      execFileSync("umount", ["--lazy", directory.path]);
      directory[Symbol.dispose]();
    },
  };
}

/** From now on nothing in it can be changed. */
export function remountReadOnly({ path }: TemporaryDirectory): void {
  execFileSync("mount", ["-o", "remount,ro", path]);
}
