import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { runPicod } from "../helpers/run-picod.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

interface Line {
  readonly event: string;
  readonly procedure?: string;
  readonly request_id?: string;
  readonly [field: string]: unknown;
}

/** Every line of the file; one that is cut fails. */
function linesOf(path: string): Line[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, "utf8");
  expect(text === "" || text.endsWith("\n")).toBe(true);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };

/** A call with a request id to find it by. */
function ask(daemon: Daemon, id: string, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(daemon.url + path, { ...init, headers: { ...AUTHORIZATION, "x-request-id": id, ...init.headers } });
}

async function counted(daemon: Daemon, metric: string): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`, { headers: AUTHORIZATION })).text();
  return Number(new RegExp(`^${metric} (.+)$`, "m").exec(text)?.[1]);
}

describe("the audit log", () => {
  it("says who did what to which path or by which command, and how it ended", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const daemon = await startDaemon({ args: ["--audit-log", log] });
    await using clients = connectTo(daemon.url);
    const headers = (id: string) => ({ headers: { "x-request-id": id } });
    await clients.process.execute({ command: "echo secret-word", env: { A: "secret-value" } }, headers("line"));
    await clients.process.execute({ argv: ["echo", "secret-word"], user: "root" }, headers("argv"));
    for await (const _ of clients.process.start({ command: "cat", stdin: false }, headers("start")));
    await clients.filesystem.stat({ path: "/missing" }, headers("stat")).catch(() => undefined);
    await clients.filesystem.move({ source: "/a", destination: "/b" }, headers("move")).catch(() => undefined);
    const messages = (async function* () {
      yield { request: { case: "metadata" as const, value: { path: `${directory.path}/up`, user: "root" } } };
      yield { request: { case: "chunk" as const, value: Buffer.from("secret-content") } };
    })();
    await clients.filesystem.writeFile(messages, headers("write"));
    await ask(daemon, "put", `/v1/files/${encodeURIComponent(`${directory.path}/put`)}`, {
      method: "PUT",
      body: "secret-content",
    });
    await ask(daemon, "post", "/v1/processes", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ command: "echo", args: ["secret-word"] }),
    });
    await ask(daemon, "api", "/api/execute", { method: "POST", body: JSON.stringify({ command: ["echo", "secret-word"] }) });
    await ask(daemon, "refused", "/v1/processes", { headers: { authorization: "Bearer wrong" } });
    await ask(daemon, "public", "/healthz");
    expect(await daemon.stop()).toBe(0);

    const lines = linesOf(log);
    const called = (id: string) => lines.find((line) => line.event === "call" && line.request_id === id);
    const common = {
      caller: "daemon",
      how: "token",
      peer: "127.0.0.1",
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      duration_ms: expect.any(Number),
    };
    const argv = sha256("echo\0secret-word\0");
    const process_id = expect.stringMatching(/^proc_/);
    expect(called("line")).toMatchObject({
      ...common,
      procedure: "/picod.v1.ProcessService/Execute",
      command_sha256: sha256("echo secret-word"),
      process_id,
      code: "ok",
    });
    expect(called("argv")).toMatchObject({ ...common, command_sha256: argv, user: "root", process_id, code: "ok" });
    expect(called("start")).toMatchObject({ ...common, command_sha256: sha256("cat"), process_id });
    expect(called("stat")).toMatchObject({ ...common, paths: ["/missing"], code: "not_found" });
    expect(called("move")).toMatchObject({ ...common, paths: ["/a", "/b"], code: "not_found" });
    expect(called("write")).toMatchObject({ ...common, paths: [`${directory.path}/up`], user: "root", code: "ok" });
    expect(called("put")).toMatchObject({ ...common, procedure: "PUT /v1/files/{path...}", code: "ok" });
    expect(called("put")).toMatchObject({ paths: [encodeURIComponent(`${directory.path}/put`)] });
    expect(called("post")).toMatchObject({ ...common, procedure: "POST /v1/processes", command_sha256: argv, process_id });
    expect(called("api")).toMatchObject({ ...common, procedure: "POST /api/execute", command_sha256: argv, process_id });
    expect(called("refused")).toMatchObject({ code: "unauthenticated", procedure: "GET /v1/processes" });
    expect(called("refused")).not.toHaveProperty("caller");
    expect(called("public")).toBe(undefined);
    // What is followed may run for days: its begin is there too.
    const begun = lines.findIndex(({ event, request_id }) => event === "call_begun" && request_id === "start");
    expect(lines[begun]).toMatchObject({ procedure: "/picod.v1.ProcessService/Start", command_sha256: sha256("cat") });
    expect(begun).toBeLessThan(lines.indexOf(called("start") as Line));
    expect([lines[0]?.event, lines.at(-1)?.event]).toEqual(["started", "stopped"]);
    expect(readFileSync(log, "utf8")).not.toMatch(new RegExp(`secret|${TOKEN}|Bearer`));
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  it("shows commands when it is asked to", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const daemon = await startDaemon({ args: ["--audit-log", log, "--audit-commands"] });
    await using clients = connectTo(daemon.url);
    await clients.process.execute({ command: "echo shown" });
    await clients.process.execute({ argv: ["echo", "shown too"] });
    await daemon.stop();
    const commands = linesOf(log).flatMap(({ command }) => (command === undefined ? [] : [command]));
    expect(commands).toEqual(["echo shown", ["echo", "shown too"]]);
  });

  it("is opened anew on SIGHUP", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const daemon = await startDaemon({ args: ["--audit-log", log] });
    await ask(daemon, "before", "/v1/processes");
    await eventually("the line is there", () => existsSync(log) && readFileSync(log, "utf8").includes('"before"'));
    renameSync(log, `${log}.moved`);
    daemon.child.kill("SIGHUP");
    await eventually("the file is there again", () => existsSync(log));
    await ask(daemon, "after", "/v1/processes");
    await daemon.stop();
    expect(linesOf(`${log}.moved`).map(({ request_id }) => request_id)).toEqual([undefined, "before"]);
    expect(linesOf(log).map(({ request_id }) => request_id)).toEqual(["after", undefined]);
  });

  it("begins anew when it is full, and keeps as many full ones as it is told", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const rotating = ["--audit-log-max-bytes", "1KiB", "--audit-log-files", "2"];
    const daemon = await startDaemon({ args: ["--audit-log", log, ...rotating] });
    for (let number = 0; number < 40; number++) await ask(daemon, `call-${number}`, "/v1/processes");
    await daemon.stop();
    expect(existsSync(`${log}.3`)).toBe(false);
    const kept = [`${log}.2`, `${log}.1`, log].flatMap(linesOf);
    const numbers = kept.flatMap(({ request_id }) => (request_id === undefined ? [] : [Number(request_id.slice(5))]));
    // In order, without a gap, to the last.
    expect(numbers.length).toBeGreaterThan(5);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => 40 - numbers.length + index));
  });

  it("waits for a disk that is full, and the daemon does not", async () => {
    using directory = mountedTmpfs("size=256k");
    const log = join(directory.path, "audit.jsonl");
    await using daemon = await startDaemon({ args: ["--audit-log", log] });
    await eventually("it is open", () => existsSync(log));
    try {
      writeFileSync(join(directory.path, "filler"), Buffer.alloc(1024 * 1024));
    } catch {
      // It is as large as it gets.
    }
    // More than the last page of the file still takes.
    for (let number = 0; number < 100; number++)
      expect(await ask(daemon, `call-${number}`, "/v1/processes")).toMatchObject({ ok: true });
    await daemon.waitForLog(({ msg }) => msg === "cannot write the audit log");
    rmSync(join(directory.path, "filler"));
    await eventually("all lines are there", () => readFileSync(log, "utf8").includes('"call-99"'));
    const calls = linesOf(log).flatMap(({ request_id }) => (request_id?.startsWith("call-") ? [request_id] : []));
    expect(calls).toEqual(Array.from({ length: 100 }, (_, number) => `call-${number}`));
    expect(daemon.logs.filter(({ msg }) => msg === "cannot write the audit log")).toHaveLength(1);
    expect(await counted(daemon, "picod_audit_lines_lost_total")).toBe(0);
  });

  it("counts the lines that a place which cannot be written has cost", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--audit-log", join(directory.path, "missing/audit.jsonl")] });
    const line = await daemon.waitForLog(({ msg }) => msg === "cannot write the audit log");
    expect(line).toMatchObject({ level: "error", err: { message: expect.stringContaining("ENOENT") } });
    // Each line holds the path that was asked for: some 16 KiB, and 4 MiB may wait.
    const path = "/v1/files/".padEnd(15_000, "x");
    for (let number = 0; number < 300; number++) await ask(daemon, "x", path);
    expect(await counted(daemon, "picod_audit_lines_lost_total")).toBeGreaterThan(0);
    expect(await counted(daemon, "picod_audit_lines_total")).toBe(0);
    // Those that waited, then how many are missing, then the others.
    mkdirSync(join(directory.path, "missing"));
    const log = join(directory.path, "missing/audit.jsonl");
    const isTold = () => existsSync(log) && readFileSync(log, "utf8").includes('"event":"lines_lost"');
    await eventually("the gap is told", isTold);
    await ask(daemon, "after", "/v1/processes");
    await daemon.stop();
    const lines = linesOf(log);
    expect(lines.at(-1)).toMatchObject({ event: "stopped" });
    const lost = lines.filter(({ event }) => event === "lines_lost").reduce((sum, { count }) => sum + Number(count), 0);
    // 300, two that asked for metrics, and one after.
    expect(lines.filter(({ event }) => event === "call").length + lost).toBe(303);
    expect(await runPicod(["audit", "verify", log])).toMatchObject({ ended: 0, stdout: expect.stringMatching(/^ok: /) });
  });

  it("is not filled by those who have no token", async () => {
    using directory = temporaryDirectory();
    const log = join(directory.path, "audit.jsonl");
    const daemon = await startDaemon({ args: ["--audit-log", log] });
    const startedAt = performance.now();
    for (let number = 0; number < 200; number++) await fetch(`${daemon.url}/v1/processes`);
    const seconds = Math.ceil((performance.now() - startedAt) / 1000) + 1;
    await daemon.stop();
    const lines = linesOf(log);
    const refused = lines.filter(({ code }) => code === "unauthenticated").length;
    const leftOut = lines
      .filter(({ event }) => event === "refused_calls_left_out")
      .reduce((sum, { count }) => sum + Number(count), 0);
    expect(refused).toBeLessThanOrEqual(20 * seconds);
    expect(refused + leftOut).toBe(200);
  });
});
