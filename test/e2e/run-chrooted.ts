import { spawnSync } from "node:child_process";
import { artefact, packageFolder } from "./packages.js";

/** Runs a program in a root that has the packages below /opt and nothing else mounted. */
export function runChrooted(root: string, ...program: string[]): { exitCode: number | null; stderr: string } {
  const script = `mkdir -p "$1/opt/picod" "$1/opt/packages" && mount --bind "$2" "$1/opt/picod" && mount --bind "$3" "$1/opt/packages" || exit 99
root=$1; shift 3; exec chroot "$root" "$@"`;
  const mounts = [root, packageFolder(process.arch), artefact(".")];
  const { status, stderr } = spawnSync("unshare", ["--mount", "sh", "-c", script, "sh", ...mounts, ...program], {
    encoding: "utf8",
  });
  return { exitCode: status, stderr };
}
