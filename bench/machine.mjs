import { execFile } from "node:child_process";
import { arch, availableParallelism, cpus, loadavg, release } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Where and on what the figures were taken. */
export async function describeMachine() {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    arch: arch(),
    kernel: release(),
    node: process.version,
    go: (await run("go", ["env", "GOVERSION"])).stdout.trim(),
    // sshd writes its version to standard error, and only as part of a complaint.
    ssh: (await run("ssh", ["-V"])).stderr.trim(),
    picod: process.env.PICOD_BIN ?? (await describeTree()),
    startedAt: new Date().toISOString(),
    loadAverage: loadavg()[0],
  };
}

async function describeTree() {
  const git = async (...args) => (await run("git", args, { cwd: import.meta.dirname })).stdout.trim();
  const changed = await git("status", "--porcelain", "--", "../src", "../scripts", "../package-lock.json");
  return `${await git("rev-parse", "--short", "HEAD")}${changed === "" ? "" : " with uncommitted changes"}`;
}
