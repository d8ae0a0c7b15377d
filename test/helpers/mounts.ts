import { execFileSync, spawnSync } from "node:child_process";

/** Mounts a file system of its own, or a directory on a second path. For root. */
export function mount(kind: "tmpfs" | "bind", path: string, source = "none"): void {
  execFileSync("mount", kind === "bind" ? ["--bind", source, path] : ["-t", kind, source, path]);
}

/** Also when it is not mounted. Fails when somebody uses it, with the next removal of the directory. */
export function unmount(path: string): void {
  spawnSync("umount", [path]);
}
