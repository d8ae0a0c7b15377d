import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { freePort } from "./daemon.mjs";
import { TOKEN } from "./picod.mjs";

const run = promisify(execFile);
const JOB_LIMIT_MS = 120_000;
const BUILD_LIMIT_MS = 300_000;

/** Builds the client and returns its path. @throws Error when there is no Go toolchain. */
export async function buildClient(directory) {
  const path = join(directory, "client");
  try {
    await run("go", ["build", "-o", path, "."], { cwd: join(import.meta.dirname, "client"), timeout: BUILD_LIMIT_MS });
  } catch (error) {
    if (error.code === "ENOENT") throw new Error("go not found: the benchmark's client is written in Go, install its toolchain");
    throw new Error(`cannot build the client: ${error.stderr || error.message}`);
  }
  return path;
}

/** One connection to one daemon, of the client in Go unless the daemon brings another. `run` takes a job and resolves with its result; one at a time. */
export function openClient(path, daemon, protocol) {
  const serve = [path, "serve", "-protocol", protocol, "-address", daemon.address, "-key", daemon.clientKey ?? ""];
  const [program, ...args] = daemon.clientCommand ?? serve;
  const child = spawn(program, args, { env: clientEnvironment(), stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  // What it could not be told is noticed at the missing answer.
  child.stdin.on("error", () => undefined);
  return {
    /** For the end of a probe, which has its answer in that of the probe. */
    tell: (message) => child.stdin.write(`${JSON.stringify(message)}\n`),
    async run(job) {
      const limit = setTimeout(() => child.kill("SIGKILL"), JOB_LIMIT_MS);
      child.stdin.write(`${JSON.stringify(job)}\n`);
      const { value, done } = await lines.next();
      clearTimeout(limit);
      if (done) throw new Error(`the client for ${daemon.name} ended in the middle of ${job.kind}`);
      return toResult(value, daemon, job.kind);
    },
    async close() {
      child.stdin.end();
      const limit = setTimeout(() => child.kill("SIGKILL"), JOB_LIMIT_MS);
      await exited;
      clearTimeout(limit);
    },
  };
}

/** Starts another instance of a daemon, waits for its first answer and ends it. */
export async function timeStartup(path, daemon, protocol) {
  const port = await freePort();
  const { argv, env } = daemon.command(port);
  const args = ["startup", "-protocol", protocol, "-address", `127.0.0.1:${port}`, "--", ...argv];
  const { stdout } = await run(path, args, { env, timeout: JOB_LIMIT_MS });
  return toResult(stdout, daemon, "start-up");
}

function toResult(line, daemon, kind) {
  const result = JSON.parse(line);
  if (result.error !== undefined) throw new Error(`${kind} of ${daemon.name} failed: ${result.error}`);
  return result;
}

function clientEnvironment() {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, PICOD_ACCESS_TOKEN: TOKEN };
}
