import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { BASE_IMAGE, IMAGE } from "./container.js";
import { packageFolder, packagePath } from "./packages.js";
import { installPythonTools } from "./python-tools.js";

/** What has to be installed, by a file that the Debian package brings. */
const PACKAGES: Readonly<Record<string, string>> = {
  chromium: "/usr/bin/chromium",
  podman: "/usr/bin/podman",
  runc: "/usr/sbin/runc",
  iptables: "/usr/sbin/iptables",
  debootstrap: "/usr/sbin/debootstrap",
  "containernetworking-plugins": "/usr/lib/cni/bridge",
  "qemu-user-static": "/usr/bin/qemu-aarch64-static",
  "openssh-server": "/usr/sbin/sshd",
  "openssh-client": "/usr/bin/ssh",
  "nginx-light": "/usr/sbin/nginx",
  wrk: "/usr/bin/wrk",
  "nghttp2-client": "/usr/bin/h2load",
};

const root = join(import.meta.dirname, "../..");

/** Makes the packages, and the image of one, once for all tests; the image in a podman storage of its own that is removed afterwards. */
// biome-ignore lint/style/noDefaultExport: vitest asks for it.
export default function setUp(): () => void {
  installPackages();
  process.env.PICOD_E2E_CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "picod");
  mkdirSync(process.env.PICOD_E2E_CACHE, { recursive: true });
  installPythonTools();
  const storage = mkdtempSync(join(tmpdir(), "picod-e2e-"));
  process.env.CONTAINERS_STORAGE_CONF = join(storage, "storage.conf");
  process.env.CONTAINERS_CONF = join(storage, "containers.conf");
  writeFileSync(process.env.CONTAINERS_STORAGE_CONF, storageConfiguration(storage));
  writeFileSync(process.env.CONTAINERS_CONF, engineConfiguration());
  try {
    const folder = makePackages(storage);
    const tags = ["--tag", IMAGE, "--base-tag", BASE_IMAGE, "--folder", folder, "--cache", process.env.PICOD_E2E_CACHE];
    execFileSync(join(root, "scripts/build-image.sh"), tags, { stdio: ["ignore", "ignore", "inherit"] });
  } catch (error) {
    tearDown(storage);
    throw error;
  }
  return () => tearDown(storage);
}

/** Returns the folder of this machine's architecture. Those of an earlier run can be given. */
function makePackages(storage: string): string {
  process.env.PICOD_E2E_PACKAGES ??= join(storage, "packages");
  const out = process.env.PICOD_E2E_PACKAGES;
  if (!existsSync(out)) {
    const command = [join(root, "packaging/main.mjs"), "--out", out];
    execFileSync(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"] });
  }
  for (const arch of ["x64", "arm64"]) execFileSync("tar", ["-xzf", packagePath(arch, ".tar.gz"), "--directory", storage]);
  process.env.PICOD_E2E_FOLDERS = storage;
  return packageFolder(process.arch);
}

function tearDown(storage: string): void {
  execFileSync("podman", ["rm", "--all", "--force", "--time", "0"], { stdio: ["ignore", "ignore", "inherit"] });
  rmSync(storage, { recursive: true, force: true });
}

/** vfs works on every file system, also inside another container. */
function storageConfiguration(storage: string): string {
  return `[storage]\ndriver = "vfs"\ngraphroot = "${storage}/graph"\nrunroot = "${storage}/run"\n`;
}

/**
 * For a machine without systemd. The limits stay below those of this process, because raising them is a right
 * (CAP_SYS_RESOURCE) that root of a container or a microVM need not have.
 */
function engineConfiguration(): string {
  return `[containers]
default_ulimits = ["nofile=${limit("Max open files", 65_536)}", "nproc=${limit("Max processes", 32_768)}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
`;
}

function limit(name: string, atMost: number): string {
  const hard = new RegExp(`^${name} +\\S+ +(\\S+)`, "m").exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  const value = hard === undefined || hard === "unlimited" ? atMost : Math.min(atMost, Number(hard));
  return `${value}:${value}`;
}

function installPackages(): void {
  if (process.getuid?.() !== 0) throw new Error("the end-to-end tests make containers: run them as root");
  const missing = Object.keys(PACKAGES).filter((name) => !existsSync(PACKAGES[name] ?? ""));
  if (missing.length === 0) return;
  if (!existsSync("/usr/bin/apt-get")) throw new Error(`the end-to-end tests need these Debian packages: ${missing.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync("apt-get", ["update", "--quiet=2"], { env, stdio: "inherit" });
  execFileSync("apt-get", ["install", "--yes", "--quiet=2", "--no-install-recommends", ...missing], { env, stdio: "inherit" });
}
