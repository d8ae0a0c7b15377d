import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { type Client, Code, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ProcessService, Signal, type StartRequest, type StartResponse } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

type Sandboxd = Client<typeof ProcessService>;

const sh = (line: string, more: object = {}) => ({ config: { command: ["/bin/sh", "-c", line], ...more } });
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const MAX_CLIENT_BYTES = 4 * 1024 * 1024;

async function withSandboxd(test: (client: Sandboxd, daemon: Daemon, root: string) => Promise<void>): Promise<void> {
  using directory = temporaryDirectory();
  const root = realpathSync(directory.path);
  const env = { PICOD_ACCESS_TOKEN: TOKEN, SANDBOX_NAME: "blue", SANDBOX_API_KEY: "hidden", HOME: "/root" };
  await using daemon = await startDaemon({ args: ["--root", root], env });
  await using clients = connectTo(daemon.url);
  await test(createClient(ProcessService, clients.transport), daemon, root);
}

/** Events of a stream, one at a time. */
function started(client: Sandboxd, request: Partial<StartRequest> | object, signal?: AbortSignal) {
  const options = signal === undefined ? {} : { signal };
  const iterator = client.start(request as object, options)[Symbol.asyncIterator]();
  const next = async (): Promise<StartResponse["event"]> => {
    const { done, value } = await iterator.next();
    return done ? { case: undefined } : value.event;
  };
  const init = async () => {
    const event = await next();
    if (event.case !== "init") throw new Error(`expected init, got ${event.case}`);
    return event.value.processId;
  };
  /** What was printed up to the exit, and its code. */
  const rest = async () => {
    const output = { stdout: "", stderr: "" };
    for (let event = await next(); event.case !== undefined; event = await next()) {
      if (event.case === "exit") return { ...output, exitCode: event.value.exitCode };
      if (event.case === "stdout" || event.case === "stderr") output[event.case] += text(event.value);
    }
    throw new Error("the stream ended without an exit");
  };
  return { next, init, rest };
}

describe("Execute of agent-sandbox", () => {
  it("gives streams and exit code, and -1 for a signal", () =>
    withSandboxd(async (client) => {
      const answer = await client.execute(sh("printf 'a\\377'; echo b >&2; exit 3"));
      expect(answer).toMatchObject({ exitCode: 3, stdout: new Uint8Array([0x61, 0xff]) });
      expect(text(answer.stderr)).toBe("b\n");
      expect(await client.execute(sh("kill -9 $$"))).toMatchObject({ exitCode: -1 });
      expect(await client.execute({ config: { command: ["cat"] } })).toMatchObject({ exitCode: 0 });
    }));

  it("runs in the root, or where cwd says within it", () =>
    withSandboxd(async (client, _daemon, root) => {
      mkdirSync(`${root}/w`);
      writeFileSync(`${root}/file`, "");
      symlinkSync("/etc", `${root}/out`);
      symlinkSync(`${root}/w`, `${root}/as-commands-see-it`);
      expect(text((await client.execute(sh("pwd"))).stdout)).toBe(`${root}\n`);
      for (const cwd of ["w", "/w", `${root}/w`, "/../w", "w/../w/.", "as-commands-see-it"]) {
        expect(text((await client.execute(sh("pwd", { cwd }))).stdout), cwd).toBe(`${root}/w\n`);
      }
      for (const [cwd, code] of [
        ["missing", Code.NotFound],
        ["out", Code.PermissionDenied],
        ["../w", Code.PermissionDenied],
        ["file", Code.FailedPrecondition],
      ] as const) {
        await expect(client.execute(sh("pwd", { cwd })), cwd).rejects.toMatchObject({ code });
      }
    }));

  it("passes the daemon's environment on, without what is PicoD's own", () =>
    withSandboxd(async (client) => {
      const { stdout } = await client.execute(sh("env", { envVars: { MINE: "1", SANDBOX_NAME: "red" } }));
      expect(text(stdout)).toMatch(/^SANDBOX_NAME=red$/m);
      expect(text(stdout)).toMatch(/^SANDBOX_API_KEY=hidden$/m);
      expect(text(stdout)).toMatch(/^MINE=1$/m);
      expect(text(stdout)).not.toContain(TOKEN);
      expect(text(stdout)).not.toMatch(/^(NODE_|UV_|PICOD_(?!PROCESS_ID))/m);
    }));

  it.each([
    [{}, Code.InvalidArgument, "command is required"],
    [{ config: { command: [] } }, Code.InvalidArgument, "command is required"],
    [{ config: { command: [""] } }, Code.InvalidArgument, "no command"],
    [
      { config: { command: ["no-such-program"] } },
      Code.NotFound,
      "command or path not found: program not found: no-such-program",
    ],
    [{ config: { command: ["/no/such"] } }, Code.NotFound, "command or path not found: cannot run /no/such"],
    [{ config: { command: ["/etc/passwd"] } }, Code.PermissionDenied, "cannot run /etc/passwd: permission denied"],
    [{ config: { command: ["true"], envVars: { "A=B": "" } } }, Code.InvalidArgument, "invalid env"],
    [{ config: { command: ["true"], envVars: { A: "\0" } } }, Code.InvalidArgument, "invalid env"],
  ])("refuses %j", (request, code, message) =>
    withSandboxd(async (client) => {
      await expect(client.execute(request)).rejects.toMatchObject({ code, rawMessage: expect.stringContaining(message) });
      await expect(started(client, request).init()).rejects.toMatchObject({ code });
    }),
  );

  it("never answers with more than a client accepts, and says what it left out", () =>
    withSandboxd(async (client) => {
      const all = await client.execute(sh("head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2"));
      expect([all.stdout.length, all.stderr.length]).toEqual([3_000_000, 1_000_000]);
      const cut = await client.execute(
        sh("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo last; yes e | head -c 5000000 >&2"),
      );
      expect(cut.stdout.length + cut.stderr.length).toBeLessThan(MAX_CLIENT_BYTES);
      expect(cut.stdout.length + cut.stderr.length).toBeGreaterThan(MAX_CLIENT_BYTES - 1_000);
      expect(text(cut.stdout)).toMatch(/^first\nx+\n\[picod: \d+ bytes omitted\]\nx+last\n$/);
      const omitted = Number(/\[picod: (\d+) bytes/.exec(text(cut.stdout))?.[1]);
      const mark = `\n[picod: ${omitted} bytes omitted]\n`;
      expect(cut.stdout.length - mark.length + omitted).toBe(20_000_011);
    }));

  it("ends the whole tree at the caller's deadline, and when the caller gives up", () =>
    withSandboxd(async (client) => {
      const line = (name: string) => sh(`setsid sh -c 'sleep 1000; : ${name}' & sleep 1000; : ${name}`);
      await expect(client.execute(line("late-one"), { timeoutMs: 500 })).rejects.toMatchObject({ code: Code.DeadlineExceeded });
      await eventually("they are gone", () => processesNamed("late-one").length === 0);
      const abort = new AbortController();
      const cancelled = client.execute(line("given-up"), { signal: abort.signal });
      await eventually("they run", () => processesNamed("given-up").length >= 2);
      abort.abort();
      await expect(cancelled).rejects.toMatchObject({ code: Code.Canceled });
      await eventually("they are gone too", () => processesNamed("given-up").length === 0);
    }));

  it("does not wait for a child in the background that holds the output", () =>
    withSandboxd(async (client) => {
      const answer = await client.execute(sh("sleep 1000.125 & echo answer"));
      expect([answer.exitCode, text(answer.stdout)]).toEqual([0, "answer\n"]);
      expect(processesNamed("1000.125")).toHaveLength(1);
      for (const pid of processesNamed("1000.125")) process.kill(pid);
    }));
});

describe("Start of agent-sandbox", () => {
  it("counts its processes, and forgets one that has ended", () =>
    withSandboxd(async (client) => {
      const first = started(client, sh("read line; echo got $line; exit 4"));
      const processId = await first.init();
      expect(processId).toBe(1);
      await client.writeStdin({ processId, payload: { case: "input", value: new Uint8Array() } });
      await client.writeStdin({ processId, payload: { case: "input", value: Buffer.from("it\n") } });
      expect(await first.rest()).toEqual({ stdout: "got it\n", stderr: "", exitCode: 4 });
      for (const call of [
        () => client.writeStdin({ processId, payload: { case: "eof", value: {} } }),
        () => client.sendSignal({ processId, signal: Signal.SIGTERM }),
        () => client.resizeTTY({ processId, cols: 1, rows: 1 }),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: Code.NotFound, rawMessage: "process 1 not found" });
      }
      expect(await started(client, sh("true")).init()).toBe(2);
    }));

  it("takes input of any size, and its end", () =>
    withSandboxd(async (client) => {
      const process = started(client, sh("sha256sum; wc -c >&2"));
      const processId = await process.init();
      const piece = Buffer.alloc(3_000_000, "x");
      for (let sent = 0; sent < 3; sent++) await client.writeStdin({ processId, payload: { case: "input", value: piece } });
      await client.writeStdin({ processId, payload: { case: "eof", value: {} } });
      await client.writeStdin({ processId, payload: { case: "eof", value: {} } }).catch(() => undefined);
      const { createHash } = await import("node:crypto");
      const hash = createHash("sha256").update(Buffer.alloc(9_000_000, "x")).digest("hex");
      expect(await process.rest()).toEqual({ stdout: `${hash}  -\n`, stderr: "0\n", exitCode: 0 });
    }));

  it("gives a terminal that ends its input as asked, and changes its size", () =>
    withSandboxd(async (client) => {
      const process = started(client, { ...sh("stty size; cat; stty size"), pty: { cols: 120, rows: 40 } });
      const processId = await process.init();
      const first = await process.next();
      expect(first.case === "stdout" && text(first.value)).toBe("40 120\r\n");
      await client.resizeTTY({ processId, cols: 0, rows: 0 });
      await client.resizeTTY({ processId, cols: 70_000, rows: 50 });
      await client.writeStdin({ processId, payload: { case: "eof", value: {} } });
      const { stdout, exitCode } = await process.rest();
      expect([stdout.trim(), exitCode]).toEqual(["50 65535", 0]);
    }));

  it("signals the group with what it is allowed to", () =>
    withSandboxd(async (client) => {
      const process = started(client, sh("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"));
      const processId = await process.init();
      await process.next();
      for (const signal of [Signal.UNSPECIFIED, 1 as Signal]) {
        await expect(client.sendSignal({ processId, signal })).rejects.toMatchObject({ code: Code.InvalidArgument });
      }
      await expect(client.resizeTTY({ processId, cols: 1, rows: 1 })).rejects.toMatchObject({ code: Code.FailedPrecondition });
      await client.sendSignal({ processId, signal: Signal.SIGINT });
      expect(await process.rest()).toMatchObject({ stdout: "caught\n", exitCode: 5 });
      const killed = started(client, sh("sleep 1000"));
      await client.sendSignal({ processId: await killed.init(), signal: Signal.SIGKILL });
      expect(await killed.rest()).toMatchObject({ exitCode: -1 });
    }));

  it("ends all that descends from it when its stream is cancelled", () =>
    withSandboxd(async (client, daemon) => {
      const abort = new AbortController();
      const process = started(client, sh("setsid sleep 1000.25 & sleep 1000.25"), abort.signal);
      await process.init();
      await eventually("they run", () => processesNamed("1000.25").length >= 2);
      abort.abort();
      await expect(process.rest()).rejects.toMatchObject({ code: Code.Canceled });
      await eventually("they are gone", () => processesNamed("1000.25").length === 0);
      await using clients = connectTo(daemon.url);
      await eventually("nothing is kept", async () => (await clients.process.listProcesses({})).processes.length === 0);
    }));

  it("lets a process wait for a reader that is slow, and loses nothing", () =>
    withSandboxd(async (client) => {
      const process = started(client, sh("head -c 30000000 /dev/zero"));
      await process.init();
      expect((await process.rest()).stdout.length).toBe(30_000_000);
    }));
});

describe("REST of agent-sandbox", () => {
  it("tells health to everybody, and what it shows of its environment to who has the token", () =>
    withSandboxd(async (_client, { url }) => {
      const health = await fetch(`${url}/v1/health`);
      expect([health.status, await health.json()]).toEqual([200, { status: "ok", uptime_seconds: expect.any(Number) }]);
      expect((await fetch(`${url}/v1/metadata`)).status).toBe(401);
      const metadata = await fetch(`${url}/v1/metadata`, { headers: { authorization: `Bearer ${TOKEN}` } });
      expect(await metadata.json()).toEqual({ env: { SANDBOX_NAME: "blue" } });
    }));
});
