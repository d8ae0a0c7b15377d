import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../src/gen/grpc/health/v1/health_pb.js";
import { createLogger } from "../src/logger.js";
import { Readiness } from "../src/readiness.js";
import { shutDown } from "../src/shutdown.js";
import { startMetadataServer } from "./auth/metadata-server.js";
import { type Clients, connectTo, PROTOCOLS } from "./helpers/clients.js";
import { eventually } from "./helpers/eventually.js";
import { processesNamed } from "./helpers/processes.js";
import { Daemon, startDaemon, TOKEN } from "./helpers/start-daemon.js";
import { temporaryDirectory } from "./helpers/temporary-directory.js";

/** Much longer than anything here may take: who waits for it has failed. */
const LONG_GRACE = ["--shutdown-grace", "60s"];
/** So long a drain that waits for nobody may take on a machine that is busy. */
const PROMPT_MS = 5_000;

/** Starts a command and resolves when it runs; `ended` resolves with its result or its error. */
async function startCommand(clients: Clients, directory: string, command: string) {
  const mark = `started-${Math.random().toString(36).slice(2)}`;
  const ended = clients.process
    .execute({ command: `touch ${directory}/${mark}; ${command}` })
    .catch((error) => ConnectError.from(error));
  await eventually("the command runs", () => readdirSync(directory).includes(mark));
  return ended;
}

const stopping = (daemon: Daemon) => daemon.waitForLog(({ msg }) => msg === "shutting down");

describe.each(["SIGTERM", "SIGINT"] as const)("on %s the daemon", (signal) => {
  it("lets a command in progress finish and exits with 0", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: LONG_GRACE });
    await using clients = connectTo(daemon.url);
    const { path } = directory;
    const ended = startCommand(
      clients,
      path,
      `until [ -e ${path}/go ]; do sleep 0.05; done; head -c 1000000 /dev/zero | tr '\\0' x`,
    );
    await eventually("the command runs", () => readdirSync(path).length > 0);
    daemon.child.kill(signal);
    await stopping(daemon);
    writeFileSync(`${path}/go`, "");
    const result = await ended;
    if (result instanceof ConnectError) throw result;
    expect([result.exitCode, result.stdout.length]).toEqual([0, 1_000_000]);
    expect(await daemon.exited).toBe(0);
    expect(daemon.stderr).toBe("");
  });
});

describe("shutDown", () => {
  it("does not wait for ever for a command that hangs in the kernel", async () => {
    const done: string[] = [];
    const server = {
      stopAccepting: () => done.push("stop accepting"),
      idle: async () => undefined,
      abortCalls: () => done.push("abort calls"),
      closed: async () => undefined,
      destroy: () => done.push("destroy"),
    };
    const processes = { close: () => new Promise<void>(() => undefined), killAll: expect.unreachable };
    const registry = { close: () => done.push("forget processes") };
    const sandbox = {
      processes,
      registry,
      executions: { close: () => done.push("forget") },
      uploads: { close: () => done.push("drop") },
      histories: { close: () => done.push("forget changes") },
      watches: { close: () => done.push("watch no more") },
      confinement: { close: () => 0 },
    };
    const logger = await createLogger({ logLevel: "silent", logFormat: "json" });
    await shutDown({
      server,
      sandbox,
      readiness: new Readiness(),
      logger,
      audit: undefined,
      tracer: undefined,
      graceMs: 0,
      killGraceMs: 0,
    });
    const forgotten = ["forget processes", "forget", "drop", "forget changes", "watch no more"];
    expect(done).toEqual(["stop accepting", "abort calls", ...forgotten, "destroy"]);
  });
});

describe("starting as PID 1, the daemon", () => {
  it("can be stopped while it waits for the metadata service", async () => {
    const asked = Promise.withResolvers<void>();
    await using server = await startMetadataServer(() => asked.resolve());
    const wrapper = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    const daemon = new Daemon({ args: ["--metadata-url", server.url], env: {}, wrapper });
    await asked.promise;
    const [pid = 0] = daemon.children();
    process.kill(pid, "SIGTERM");
    expect(await daemon.exited).toBe(143);
    expect(server.requests).toHaveLength(1);
  });
});

describe("shutting down, the daemon", () => {
  it.each(PROTOCOLS)("answers %s calls that outlast the grace with UNAVAILABLE", async (protocol) => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "200ms"] });
    await using clients = connectTo(daemon.url, { protocol });
    const ended = startCommand(clients, directory.path, "sleep 300");
    await eventually("the command runs", () => readdirSync(directory.path).length > 0);
    expect(await daemon.stop()).toBe(0);
    expect(await ended).toMatchObject({ code: Code.Unavailable, rawMessage: "the daemon is shutting down" });
  });

  it("ends commands with TERM, then KILL, those in sessions of their own too", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "0", "--kill-grace", "300ms"] });
    await using clients = connectTo(daemon.url);
    const mark = `${path}/sleep`;
    const stubborn = `trap 'echo TERM >> ${path}/log' TERM; while :; do sleep 0.1; done # ${mark}`;
    const command = `setsid sh -c "sleep 301; : ${mark}" & (setsid setsid sh -c "sleep 302; : ${mark}" &) ; ${stubborn}`;
    const ended = startCommand(clients, path, command);
    await eventually("everything runs", () => processesNamed(mark).length >= 3);
    expect(await daemon.stop()).toBe(0);
    await ended;
    expect(processesNamed(mark)).toEqual([]);
    expect(readdirSync(path)).toContain("log");
  });

  it("ends a command whose caller has left and whose result is kept for a retry", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon({ args: LONG_GRACE });
    await using clients = connectTo(daemon.url);
    const abort = new AbortController();
    const mark = `${path}/sleep`;
    const ended = clients.process.execute({ id: "kept", command: `sleep 300; : ${mark}` }, { signal: abort.signal });
    await eventually("the command runs", () => processesNamed(mark).length > 0);
    abort.abort();
    await expect(ended).rejects.toThrow("[canceled]");
    expect(await daemon.stop()).toBe(0);
    expect(processesNamed(mark)).toEqual([]);
  });

  it("accepts no connections any longer", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: LONG_GRACE });
    await using clients = connectTo(daemon.url);
    const ended = startCommand(clients, directory.path, `until [ -e ${directory.path}/go ]; do sleep 0.05; done`);
    await eventually("the command runs", () => readdirSync(directory.path).length > 0);
    daemon.child.kill();
    await stopping(daemon);
    await expect(fetch(`${daemon.url}/healthz`)).rejects.toThrow();
    writeFileSync(`${directory.path}/go`, "");
    expect(await ended).toMatchObject({ exitCode: 0 });
    expect(await daemon.exited).toBe(0);
  });

  it("is not ready any longer, and refuses new calls on connections that it still has", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    await using daemon = await startDaemon({ args: LONG_GRACE });
    await using clients = connectTo(daemon.url);
    const asked = await openConnection(daemon.port);
    const called = await openConnection(daemon.port);
    const ended = startCommand(clients, path, `until [ -e ${path}/go ]; do sleep 0.05; done`);
    await eventually("the command runs", () => readdirSync(path).length > 0);
    daemon.child.kill();
    await stopping(daemon);
    asked.write(requestFor("GET", "/readyz"));
    called.write(requestFor("POST", "/picod.v1.ProcessService/Execute", { command: `touch ${path}/late` }));
    const [answer, refusal] = await Promise.all([text(asked), text(called)]);
    expect(answer).toMatch(/^HTTP\/1.1 503 .*"shutting down"\}$/s);
    expect(refusal).toMatch(
      /^HTTP\/1.1 503 .*"code":"unavailable","message":"the daemon is shutting down","reason":"SHUTTING_DOWN"\}$/s,
    );
    writeFileSync(`${path}/go`, "");
    expect(await ended).toMatchObject({ exitCode: 0 });
    expect(await daemon.exited).toBe(0);
    expect(readdirSync(path)).not.toContain("late");
  });

  it("does not wait for watchers of its health, and tells them that it is not serving", async () => {
    await using daemon = await startDaemon({ args: LONG_GRACE });
    await using clients = connectTo(daemon.url, { token: null });
    const health = createClient(Health, clients.transport);
    const seen: unknown[] = [];
    const watching = (async () => {
      for await (const { status } of health.watch({ service: "" })) seen.push(status);
    })().catch((error) => void seen.push(ConnectError.from(error).code));
    const unknown = (async () => {
      for await (const { status } of health.watch({ service: "no.such.Service" })) seen.push(status);
    })().catch(() => undefined);
    await eventually("both watch", () => seen.length === 2);
    expect(seen.toSorted()).toEqual([Status.SERVING, Status.SERVICE_UNKNOWN]);
    const startedAt = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    await Promise.all([watching, unknown]);
    expect(seen).toContain(Status.NOT_SERVING);
    expect(seen).toContain(Code.Unavailable);
  });

  it("does not wait for connections that are idle or have said nothing", async () => {
    await using daemon = await startDaemon({ args: LONG_GRACE });
    const agent = new Agent({ keepAlive: true });
    const [response] = (await once(get(`${daemon.url}/healthz`, { agent }), "response")) as [IncomingMessage];
    expect(await text(response)).toContain("ok");
    const session = connectHttp2(daemon.url);
    await once(session, "remoteSettings");
    const silent = await openConnection(daemon.port);
    const half = await openConnection(daemon.port);
    half.write("GET /healthz HT");
    silent.resume();
    half.resume();
    const startedAt = performance.now();
    const closed = Promise.all(
      [session, silent, half].map((connection) => new Promise((resolve) => connection.once("close", resolve))),
    );
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    await closed;
    agent.destroy();
  });

  it("exits at once on a second signal, as killed by it, and takes its commands with it", async () => {
    using directory = temporaryDirectory();
    const mark = `${directory.path}/sleep`;
    const daemon = await startDaemon({ args: [...LONG_GRACE, "--kill-grace", "60s"] });
    await using clients = connectTo(daemon.url);
    const command = `setsid sh -c "sleep 301; : ${mark}" & trap '' TERM; sleep 300; : ${mark}`;
    const ended = clients.process.execute({ command }).catch((error) => ConnectError.from(error));
    await eventually("everything runs", () => processesNamed(mark).length >= 2);
    daemon.child.kill("SIGTERM");
    await stopping(daemon);
    const startedAt = performance.now();
    daemon.child.kill("SIGINT");
    expect(await daemon.exited).toBe(130);
    expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
    await ended;
    await eventually("nothing is left", () => processesNamed(mark).length === 0);
  });
});

async function openConnection(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  // Whether it ends or is reset is the other side's choice.
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

function requestFor(method: string, path: string, body?: object): string {
  const json = body === undefined ? "" : JSON.stringify(body);
  const headers = [
    "host: picod",
    `authorization: Bearer ${TOKEN}`,
    "content-type: application/json",
    "connection: close",
    `content-length: ${json.length}`,
  ];
  return `${method} ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${json}`;
}
