import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { createLogger } from "../src/logger.js";
import { connectTo } from "./helpers/clients.js";
import { eventually } from "./helpers/eventually.js";
import { listeningPorts } from "./helpers/listening-ports.js";
import { processesNamed } from "./helpers/processes.js";
import { PICOD, startDaemon, TOKEN } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";

const { PATH = "" } = process.env;
const env = { PATH, PICOD_ACCESS_TOKEN: TOKEN };
const ARGS = ["--host", "127.0.0.1", "--port", "0"];

/** A daemon whose output goes where the test wants it. */
class BareDaemon implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown[]>;

  constructor(stdout: "pipe" | number, args: readonly string[] = []) {
    this.child = spawn(PICOD, [...ARGS, ...args], { env, stdio: ["ignore", stdout, "pipe"] });
    this.exited = once(this.child, "exit");
  }

  async port(): Promise<number> {
    if (this.child.stdout === null) throw new Error("no pipe");
    for await (const line of createInterface(this.child.stdout)) return JSON.parse(line).port;
    throw new Error("the daemon said nothing");
  }

  async [Symbol.asyncDispose]() {
    this.child.kill();
    expect((await this.exited)[0]).toBe(0);
  }
}

/** Processor time that a process has used, in milliseconds. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function healthy(port: number): Promise<boolean> {
  return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok;
}

describe("the log", () => {
  it("is one JSON object a line on a pipe, with level and time", async () => {
    await using daemon = await startDaemon({ args: ["--log-format", "auto"] });
    await using clients = connectTo(daemon.url);
    await clients.process.execute({ argv: ["true"] });
    const line = await daemon.waitForLog(({ procedure }) => procedure === "/picod.v1.ProcessService/Execute");
    expect(line).toMatchObject({ level: "info", msg: "call ended", code: "ok", peer: "127.0.0.1" });
    expect(Date.parse(String(line.time))).toBeGreaterThan(Date.now() - 60_000);
    expect(daemon.logs.map(({ level }) => level)).not.toContain("unparsable");
  });

  it("is for people when that is asked for", async () => {
    const child = spawn(PICOD, [...ARGS, "--log-format", "pretty"], { env, stdio: ["ignore", "pipe", "inherit"] });
    const [first] = await once(child.stdout, "data");
    child.kill();
    await once(child, "exit");
    expect(String(first)).toMatch(/INFO.*: server listening\n.*host: "127\.0\.0\.1"/);
  });

  it("keeps quiet below its level", async () => {
    const child = spawn(PICOD, [...ARGS, "--log-level", "warn", "--insecure-no-auth"], {
      env: { PATH },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [first] = await once(child.stdout, "data");
    child.kill();
    expect(`${first}${await text(child.stdout)}`).toMatch(/^\{"level":"warn"[^\n]*\}\n$/);
  });

  it("may lose its reader without ending the daemon or making it spin", async () => {
    await using daemon = new BareDaemon("pipe");
    const port = await daemon.port();
    daemon.child.stdout?.destroy();
    for (let call = 0; call < 100; call++) await fetch(`http://127.0.0.1:${port}/no/such/path`);
    const before = cpuMs(daemon.child.pid ?? 0);
    await eventually("a second has passed", secondsPass(1));
    expect(cpuMs(daemon.child.pid ?? 0) - before).toBeLessThan(200);
    expect(await healthy(port)).toBe(true);
  });

  it("may have a reader that stalls: neither answers nor the exit wait for it", async () => {
    using directory = temporaryDirectory();
    const fifo = `${directory.path}/log`;
    await once(spawn("mkfifo", [fifo]), "exit");
    // Held open and never read.
    const reader = openSync(fifo, "r+");
    await using daemon = new BareDaemon(reader, ["--log-level", "trace"]);
    const port = await portOf(daemon.child.pid ?? 0);
    // More than a pipe holds.
    const path = `/${"x".repeat(150)}`;
    for (let round = 0; round < 30; round++) {
      await Promise.all(Array.from({ length: 20 }, () => fetch(`http://127.0.0.1:${port}${path}`)));
    }
    expect(await healthy(port)).toBe(true);
    const startedAt = performance.now();
    daemon.child.kill();
    await daemon.exited;
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    closeSync(reader);
  });

  it("may go to a disk that is full", async () => {
    const full = openSync("/dev/full", "w");
    await using daemon = new BareDaemon(full);
    closeSync(full);
    expect(await healthy(await portOf(daemon.child.pid ?? 0))).toBe(true);
  });
});

describe("createLogger", () => {
  it.each([
    [{ authorization: "Bearer geheim" }],
    [{ headers: { authorization: "Bearer geheim", host: "here" } }],
    [{ request: { headers: { authorization: "Bearer geheim" } } }],
    [{ token: "geheim" }],
    [{ config: { accessToken: "geheim" } }],
    [{ query: { access_token: "geheim" } }],
  ])("redacts %j", async (fields) => {
    const written = await linesOf((logger) => logger.info(fields, "a request"));
    expect(written).toContain("[Redacted]");
    expect(written).not.toContain("geheim");
  });

  it("writes the cause of an error along", async () => {
    const error = new Error("outer", { cause: new Error("inner") });
    expect(await linesOf((logger) => logger.error({ err: error }, "failed"))).toMatch(
      /"err":\{"type":"Error","message":"outer: inner"/,
    );
  });
});

/** What a logger of this process writes to its stdout meanwhile. */
async function linesOf(log: (logger: Awaited<ReturnType<typeof createLogger>>) => void): Promise<string> {
  const logger = await createLogger({ logLevel: "info", logFormat: "json" });
  const { write } = process.stdout;
  let written = "";
  process.stdout.write = (chunk: string | Uint8Array) => {
    written += chunk;
    return true;
  };
  try {
    log(logger);
  } finally {
    process.stdout.write = write;
  }
  return written;
}

describe("an error that nothing caught", () => {
  const boom = 'process.on("SIGUSR2", () => { throw new Error("boom") })';
  const rejection = 'process.on("SIGUSR2", () => { Promise.reject(new Error("boom", { cause: "why" })) })';

  it.each([
    ["thrown", boom, "uncaughtException"],
    ["rejected", rejection, "unhandledRejection"],
  ])("(%s) is logged as fatal, ends commands and exits with 1", async (_case, code, origin) => {
    using directory = temporaryDirectory();
    const folder = dirname(PICOD);
    const child = spawn(
      join(folder, "node"),
      ["--import", `data:text/javascript,${encodeURIComponent(code)}`, join(folder, "picod.cjs"), ...ARGS],
      { env, stdio: ["ignore", "pipe", "pipe"] },
    );
    const lines: string[] = [];
    const output = createInterface(child.stdout).on("line", (line) => lines.push(line));
    const closed = once(output, "close");
    const stderr = text(child.stderr);
    await once(output, "line");
    await using clients = connectTo(`http://127.0.0.1:${JSON.parse(lines[0] ?? "").port}`, { protocol: "Connect over HTTP/1.1" });
    const mark = `${directory.path}/sleep`;
    const ended = clients.process.execute({ command: `sleep 300; : ${mark}` }).catch(() => undefined);
    await eventually("the command runs", () => processesNamed(mark).length > 0);
    child.kill("SIGUSR2");
    expect(await once(child, "exit")).toEqual([1, null]);
    await closed;
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      level: "fatal",
      msg: "fatal error",
      origin,
      err: { message: expect.stringContaining("boom"), stack: expect.stringContaining("SIGUSR2") },
    });
    expect(await stderr).toBe("picod: fatal error: boom\n");
    await ended;
    await eventually("nothing is left", () => processesNamed(mark).length === 0);
  });

  it("ends the daemon also when nobody reads its output", async () => {
    const folder = dirname(PICOD);
    const args = ["--import", `data:text/javascript,${encodeURIComponent(boom)}`, join(folder, "picod.cjs"), ...ARGS];
    const child = spawn(join(folder, "node"), args, { env, stdio: ["ignore", "pipe", "pipe"] });
    await once(child.stdout, "data");
    child.stdout.destroy();
    child.stderr.destroy();
    child.kill("SIGUSR2");
    expect(await once(child, "exit")).toEqual([1, null]);
  });
});

function secondsPass(seconds: number): () => boolean {
  const end = performance.now() + seconds * 1000;
  return () => performance.now() > end;
}

/** Of a daemon that nobody listens to: the one TCP port that its process listens on. */
async function portOf(pid: number): Promise<number> {
  let port = 0;
  await eventually("the daemon listens", () => {
    [port = 0] = listeningPorts(pid);
    return port > 0;
  });
  return port;
}
