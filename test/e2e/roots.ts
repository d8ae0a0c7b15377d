import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BASE_IMAGE } from "./container.js";

/** A directory to be a root file system. Use with `using`. */
export interface Root extends Disposable {
  readonly path: string;
}

/** As of an image that holds one static program: nothing at all. */
export function emptyRoot(): Root {
  const path = mkdtempSync(join(tmpdir(), "picod-root-"));
  chmodSync(path, 0o755);
  // Where the packages are mounted.
  mkdirSync(join(path, "opt"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** As Alpine's: musl and busybox. */
export function muslRoot(): Root {
  const root = emptyRoot();
  const packages = join(root.path, "packages");
  mkdirSync(packages);
  execFileSync("apt-get", ["-o", "APT::Sandbox::User=", "--quiet=2", "download", "musl", "busybox-static"], { cwd: packages });
  for (const name of readdirSync(packages)) execFileSync("dpkg-deb", ["--extract", join(packages, name), root.path]);
  rmSync(packages, { recursive: true });
  for (const name of ["sh", "id", "cat"]) symlinkSync("busybox", join(root.path, "bin", name));
  return root;
}

/** A small Debian; with `without`, less. */
export function debianRoot({ without = [] }: { without?: readonly string[] } = {}): Root {
  const root = emptyRoot();
  const container = execFileSync("podman", ["create", BASE_IMAGE, "/bin/true"], { encoding: "utf8" }).trim();
  execFileSync("sh", ["-c", 'podman export "$1" | tar -x -C "$2"', "sh", container, root.path]);
  execFileSync("podman", ["rm", container], { stdio: "ignore" });
  for (const pattern of without) execFileSync("sh", ["-c", `rm -rf ${root.path}${pattern}`]);
  return root;
}
