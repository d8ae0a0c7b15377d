import { type ChildProcess, execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { listProcesses, type ProcessEntry } from "../../src/os/proc.js";
import type { LogLine } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

/** The image that scripts/build-image.sh makes of the Dockerfile, and the bare Debian below it. */
export const IMAGE = "picod-e2e";
export const BASE_IMAGE = "picod-e2e-debian";
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

export interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs podman to its end, whatever that is. Without systemd it complains on stderr that it has no timers for health checks. */
export function podman(...args: string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    // Podman's monitor leaves a note of an OOM kill where it was started.
    execFile("podman", args, { maxBuffer: MAX_OUTPUT_BYTES, cwd: tmpdir() }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") return reject(error);
      const complaints = stderr.split("\n").filter((line) => !line.includes("unable to get systemd connection"));
      return resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr: complaints.join("\n") });
    });
  });
}

/** The output of podman. @throws when it fails. */
export async function podmanOutput(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await podman(...args);
  if (exitCode !== 0) throw new Error(`podman ${args[0]} ended with ${exitCode}: ${stderr}`);
  return stdout.trim();
}

/** Builds an image of a Dockerfile that is given as text, with the network of this machine. Returns its id. */
export async function buildImage(dockerfile: string): Promise<string> {
  using context = temporaryDirectory();
  writeFileSync(`${context.path}/Dockerfile`, dockerfile);
  return await podmanOutput("build", "--quiet", "--layers=false", "--isolation", "chroot", "--network", "host", context.path);
}

export interface ContainerOptions {
  readonly image?: string;
  /** A directory to be the root file system, instead of an image; `args` begin with the program. */
  readonly rootfs?: string;
  /** Of `podman run`: mounts, users, limits. */
  readonly options?: readonly string[];
  /** Of the entry point. */
  readonly args?: readonly string[];
}

/** A running container with picod's port published on the loopback interface. */
export class Container implements AsyncDisposable {
  readonly id: string;
  readonly url: string;
  /** Of its first process, as this machine counts. */
  readonly pid: number;
  readonly logs: LogLine[] = [];
  readonly #follower: ChildProcess;

  private constructor(id: string, address: string, pid: number) {
    this.id = id;
    this.url = `http://${address}`;
    this.pid = pid;
    this.#follower = spawn("podman", ["logs", "--follow", id], { stdio: ["ignore", "pipe", "inherit"] });
  }

  /** Resolves when picod listens. @throws with what it said when it ends instead. */
  static async start({ image = IMAGE, rootfs, options = [], args = [] }: ContainerOptions = {}): Promise<Container> {
    const published = ["run", "--detach", "--publish", "127.0.0.1::49983"];
    const root = rootfs === undefined ? [image] : ["--rootfs", rootfs];
    const id = await podmanOutput(...published, ...options, ...root, ...args);
    const address = await podman("port", id, "49983/tcp");
    const pid = await podmanOutput("inspect", "--format", "{{.State.Pid}}", id);
    const container = new Container(id, address.stdout.trim(), Number(pid));
    await container.#listening();
    return container;
  }

  /** Runs a program inside, as `docker exec` does. */
  exec(...args: string[]): Promise<Ended> {
    return podman("exec", this.id, ...args);
  }

  /** Every process inside but the first. */
  processes(): ProcessEntry[] {
    const table = listProcesses();
    const inside = new Set([this.pid]);
    for (let grown = true; grown; ) {
      const found = table.filter((entry) => inside.has(entry.parentPid) && !inside.has(entry.pid));
      for (const entry of found) inside.add(entry.pid);
      grown = found.length > 0;
    }
    return table.filter((entry) => inside.has(entry.pid) && entry.pid !== this.pid);
  }

  /** TERM, and KILL after `docker stop`'s ten seconds. Returns the exit code. */
  async stop(): Promise<number> {
    await podmanOutput("stop", "--time", "10", this.id);
    return Number(await podmanOutput("inspect", "--format", "{{.State.ExitCode}}", this.id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#follower.kill();
    await podmanOutput("rm", "--force", "--time", "0", this.id);
  }

  async #listening(): Promise<void> {
    if (this.#follower.stdout === null) throw new Error("no pipe");
    const other: string[] = [];
    for await (const line of createInterface(this.#follower.stdout)) {
      if (!line.startsWith("{")) {
        other.push(line);
        continue;
      }
      const parsed: LogLine = JSON.parse(line);
      this.logs.push(parsed);
      if (parsed.msg === "server listening") return;
    }
    throw new Error(`the container ended\n${(await podman("logs", this.id)).stderr}${other.join("\n")}`);
  }
}
