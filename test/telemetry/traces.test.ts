import { once } from "node:events";
import { copyFileSync, symlinkSync } from "node:fs";
import { get } from "node:https";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../helpers/certificates.js";
import { connectTo } from "../helpers/clients.js";
import { runPicod } from "../helpers/run-picod.js";
import { type Daemon, PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectMcp } from "../mcp/connect.js";
import { type ReceivedSpan, startOtlpReceiver } from "./otlp-receiver.js";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";
const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;
const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
/** For a collector in the next room. */
const SOON = { OTEL_BSP_SCHEDULE_DELAY: "50" };

function startTraced(url: string, env: Record<string, string> = {}, args: readonly string[] = []): Promise<Daemon> {
  return startDaemon({ args, env: { PICOD_ACCESS_TOKEN: TOKEN, OTEL_EXPORTER_OTLP_ENDPOINT: url, ...SOON, ...env } });
}

/** The samples of a metric by its labels, as they are written. */
async function samples(daemon: Daemon, metric: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${daemon.url}/metrics`, { headers: AUTHORIZATION })).text();
  const found = text.matchAll(new RegExp(`^${metric}(\\{.*\\})? (.+)$`, "gm"));
  return Object.fromEntries([...found].map(([, labels = "", value]) => [labels, Number(value)]));
}

const byName = (name: string) => (span: ReceivedSpan) => span.name === name;

describe("traces", () => {
  it.each(["gRPC", "Connect over HTTP/1.1"] as const)(
    "show a call of %s below its caller, and what it spawns below it",
    async (protocol) => {
      await using collector = await startOtlpReceiver();
      await using daemon = await startTraced(collector.url);
      await using clients = connectTo(daemon.url, { protocol });
      const headers = { traceparent, tracestate: "vendor=1", "x-request-id": "request-7" };
      const { stdout, processId } = await clients.process.execute({ command: "echo $TRACEPARENT $TRACESTATE" }, { headers });
      const call = await collector.waitFor(byName("picod.v1.ProcessService/Execute"));
      const spawn = await collector.waitFor(byName("spawn"));
      expect(call).toMatchObject({
        kind: "SPAN_KIND_SERVER",
        traceId: TRACE_ID,
        parentSpanId: PARENT_ID,
        traceState: "vendor=1",
      });
      expect(call.attributes).toMatchObject({
        "rpc.system.name": protocol === "gRPC" ? "grpc" : "connectrpc",
        "rpc.method": "picod.v1.ProcessService/Execute",
        "rpc.status_code": "OK",
        "server.address": "127.0.0.1",
        "server.port": daemon.port,
        "client.address": "127.0.0.1",
        "network.protocol.version": protocol === "gRPC" ? "2" : "1.1",
        "picod.request.id": "request-7",
        "picod.process.id": processId,
        "picod.caller": "daemon",
      });
      expect(call).toMatchObject({ status: "STATUS_CODE_UNSET", resource: { "service.name": "picod" } });
      expect(spawn).toMatchObject({ kind: "SPAN_KIND_INTERNAL", traceId: TRACE_ID, parentSpanId: call.spanId });
      expect(spawn.attributes).toEqual({
        "picod.process.id": processId,
        "process.executable.name": expect.stringMatching(/^(ba)?sh$/),
        "process.pid": expect.any(Number),
      });
      expect(stdout).toBe(`00-${TRACE_ID}-${spawn.spanId}-01 vendor=1\n`);
    },
  );

  it("begin here for a caller that has none, and tell what went wrong", async () => {
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url);
    await using clients = connectTo(daemon.url);
    await clients.filesystem.stat({ path: "/missing" }).catch(() => undefined);
    // The daemon's deadline, and none of the client's own that might come first.
    await clients.process.execute({ command: "sleep 5" }, { headers: { "grpc-timeout": "50m" } }).catch(() => undefined);
    await clients.process.execute({ argv: ["/missing/program"] });
    const stat = await collector.waitFor(byName("picod.v1.FilesystemService/Stat"));
    expect(stat).toMatchObject({ parentSpanId: "", status: "STATUS_CODE_UNSET" });
    expect(stat.attributes["rpc.status_code"]).toBe("NOT_FOUND");
    const late = await collector.waitFor(({ attributes }) => attributes["error.type"] === "deadline_exceeded");
    expect(late).toMatchObject({ status: "STATUS_CODE_ERROR", attributes: { "rpc.status_code": "DEADLINE_EXCEEDED" } });
    const spawn = await collector.waitFor(({ name, status }) => name === "spawn" && status === "STATUS_CODE_ERROR");
    expect(spawn.attributes).toMatchObject({ "process.executable.name": "program", "error.type": "spawn-failed" });
  });

  it("show transfers as what moves bytes, over RPC and plain HTTP", async () => {
    using directory = temporaryDirectory();
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url);
    await using clients = connectTo(daemon.url);
    const path = join(directory.path, "file");
    const messages = (async function* () {
      yield { request: { case: "metadata" as const, value: { path } } };
      yield { request: { case: "chunk" as const, value: new Uint8Array(100_000) } };
    })();
    await clients.filesystem.writeFile(messages);
    for await (const _ of clients.filesystem.readFile({ path }));
    const url = `${daemon.url}/v1/files/${encodeURIComponent(path)}`;
    await fetch(url, { method: "PUT", headers: { ...AUTHORIZATION, traceparent }, body: new Uint8Array(50_000) });
    await (await fetch(`${url}?download`, { headers: AUTHORIZATION })).bytes();
    const below = async (name: string) => {
      const call = await collector.waitFor(byName(name));
      return { call, transfer: await collector.waitFor(({ parentSpanId }) => parentSpanId === call.spanId) };
    };
    for (const [name, direction, bytes] of [
      ["picod.v1.FilesystemService/WriteFile", "received", 100_000],
      ["picod.v1.FilesystemService/ReadFile", "sent", 100_000],
      ["PUT /v1/files/{path...}", "received", 50_000],
      ["GET /v1/files/{path...}", "sent", 50_000],
    ] as const) {
      const { transfer } = await below(name);
      expect(transfer, name).toMatchObject({ name: "transfer", status: "STATUS_CODE_UNSET" });
      expect(transfer.attributes["picod.transfer.direction"], name).toBe(direction);
      // Framing included.
      expect(Math.round(Number(transfer.attributes["picod.transfer.bytes"]) / 10_000), name).toBe(bytes / 10_000);
    }
    const { call } = await below("PUT /v1/files/{path...}");
    expect(call).toMatchObject({ kind: "SPAN_KIND_SERVER", traceId: TRACE_ID, parentSpanId: PARENT_ID });
    expect(call.attributes).toMatchObject({
      "http.request.method": "PUT",
      "http.route": "/v1/files/{path...}",
      "http.response.status_code": 204,
      "url.path": `/v1/files/${encodeURIComponent(path)}`,
      "url.scheme": "http",
      "user_agent.original": expect.any(String),
    });
  });

  it("tell a request over TLS from one in the clear", async () => {
    using directory = temporaryDirectory();
    const { cert, certPath, keyPath } = makeCertificate(directory.path, "server", { names: "IP:127.0.0.1" });
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url, {}, ["--tls-cert", certPath, "--tls-key", keyPath]);
    const asked = get({
      host: "127.0.0.1",
      port: daemon.port,
      path: "/v1/processes",
      ca: cert,
      headers: AUTHORIZATION,
      agent: false,
    });
    const [answer] = await once(asked, "response");
    answer.resume();
    const call = await collector.waitFor(byName("GET /v1/processes"));
    expect(call.attributes).toMatchObject({ "url.scheme": "https", "http.response.status_code": 200 });
  });

  it("tell nothing that is secret, and commands when they are asked to", async () => {
    await using collector = await startOtlpReceiver();
    const secretHeaders = { OTEL_EXPORTER_OTLP_HEADERS: "api-key=collector-secret" };
    await using daemon = await startTraced(collector.url, secretHeaders);
    await using talkative = await startTraced(collector.url, secretHeaders, ["--trace-commands"]);
    for (const { url, pid } of [daemon, talkative]) {
      await using clients = connectTo(url);
      const command = `: secret-command; tr '\\0' '\\n' < /proc/${pid}/environ; env`;
      const { stdout } = await clients.process.execute({
        command,
        env: { A: "secret-value" },
        stdin: Buffer.from("secret-input"),
      });
      expect(stdout).not.toContain("collector-secret");
      const body = JSON.stringify({ command: ["env"] });
      const inherited = await (await fetch(`${url}/api/execute`, { method: "POST", headers: AUTHORIZATION, body })).json();
      expect(inherited).not.toMatchObject({ stdout: expect.stringContaining("OTEL_") });
      await fetch(`${url}/v1/files/missing?signature=secret-signature`, { headers: AUTHORIZATION });
      // No token, no span: strangers must not be able to fill the collector. Nor do probes.
      for (const path of ["/v1/processes?secret-query", "/healthz"]) await fetch(url + path);
    }
    expect(await daemon.stop()).toBe(0);
    expect(await talkative.stop()).toBe(0);
    expect(collector.requests[0]).toMatchObject({ path: "/v1/traces", headers: { "api-key": "collector-secret" } });
    const names = new Set(collector.spans.map(({ name }) => name));
    const expected = ["GET /v1/files/{path...}", "POST /api/execute", "picod.v1.ProcessService/Execute", "spawn"];
    expect([...names].sort()).toEqual(expected);
    const shown = collector.spans.filter(({ attributes }) => "process.command_line" in attributes);
    expect(shown.map(({ attributes }) => attributes["process.command_line"])).toEqual([
      expect.stringContaining("-c : secret-command"),
      "env",
    ]);
    const others = collector.spans.filter((span) => !shown.includes(span));
    expect(JSON.stringify(others)).not.toMatch(new RegExp(`secret|${TOKEN}`));
    expect(JSON.stringify(shown)).not.toMatch(/secret-(value|input|signature|query)/);
  });

  it("obey the variables of OpenTelemetry", async () => {
    await using collector = await startOtlpReceiver();
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`,
      OTEL_SERVICE_NAME: "sandbox",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=a%20b",
      OTEL_TRACES_SAMPLER: "parentbased_always_off",
      OTEL_EXPORTER_OTLP_COMPRESSION: "none",
    };
    await using daemon = await startTraced("http://127.0.0.1:1/unused", env);
    await using clients = connectTo(daemon.url);
    const asCaller = async (headers: Record<string, string>) => {
      return (await clients.process.execute({ command: "echo $TRACEPARENT" }, { headers })).stdout.trim();
    };
    // Whoever decides not to sample decides for those below, too.
    expect(await asCaller({})).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    expect(await asCaller({ traceparent: traceparent.replace(/01$/, "00") })).toMatch(
      new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-00$`),
    );
    const sampled = await asCaller({ traceparent });
    const spawn = await collector.waitFor(byName("spawn"));
    expect(sampled).toBe(`00-${TRACE_ID}-${spawn.spanId}-01`);
    await daemon.stop();
    expect(collector.spans).toHaveLength(2);
    expect(collector.requests[0]?.path).toBe("/own/path");
    expect(spawn.resource).toMatchObject({ "service.name": "sandbox", "deployment.environment.name": "test", team: "a b" });
  });

  it.each([
    ["OTEL_SDK_DISABLED", "true", undefined],
    ["OTEL_TRACES_EXPORTER", "none", undefined],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /no traces are exported: OTEL_EXPORTER_OTLP_PROTOCOL is grpc/],
  ])("are off with %s=%s, and only passed on", async (name, value, warning) => {
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url, { [name]: value });
    await using clients = connectTo(daemon.url);
    const { stdout } = await clients.process.execute({ command: "echo $TRACEPARENT" }, { headers: { traceparent } });
    expect(stdout).toBe(`${traceparent}\n`);
    if (warning !== undefined) await daemon.waitForLog(({ msg }) => warning.test(msg));
    await daemon.stop();
    expect(collector.requests).toEqual([]);
  });

  it("cost nothing when nobody asks for them: their file is not looked for", async () => {
    using directory = temporaryDirectory();
    const dist = dirname(PICOD);
    for (const name of ["picod", "picod.cjs", "daemon.cjs", "daemon.cache"])
      copyFileSync(join(dist, name), join(directory.path, name));
    for (const name of ["node", "node_modules"]) symlinkSync(join(dist, name), join(directory.path, name));
    const wrapper = ["sh", "-c", 'copy=$1; shift 2; exec "$copy" "$@"', "sh", join(directory.path, "picod")];
    await using daemon = await startDaemon({ wrapper });
    await using clients = connectTo(daemon.url);
    expect((await clients.process.execute({ command: "echo $TRACEPARENT" }, { headers: { traceparent } })).stdout).toBe(
      `${traceparent}\n`,
    );
    const env = { PICOD_ACCESS_TOKEN: TOKEN, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" };
    const asked = await runPicod(["--port", "0", "--host", "127.0.0.1"], { wrapper, env });
    expect(asked).toMatchObject({ ended: 1, stderr: expect.stringContaining("otlp-tracer.cjs") });
  });
});

describe("a collector", () => {
  it("that is gone costs spans, which are counted, and nothing else", async () => {
    await using daemon = await startTraced("http://127.0.0.1:1", { OTEL_EXPORTER_OTLP_TIMEOUT: "200" });
    await using clients = connectTo(daemon.url);
    await clients.filesystem.stat({ path: "/" });
    await daemon.waitForLog(({ level, msg }) => level === "warn" && /^OpenTelemetry: .*ECONNREFUSED/s.test(msg));
    expect(await samples(daemon, "picod_trace_spans_dropped_total")).toEqual({ '{reason="export_failed"}': 1 });
    expect(await samples(daemon, "picod_trace_spans_exported_total")).toEqual({ "": 0 });
  });

  it("that never answers holds up neither calls nor the end of the daemon", async () => {
    await using collector = await startOtlpReceiver("nothing");
    const env = { OTEL_BSP_MAX_QUEUE_SIZE: "20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" };
    await using daemon = await startTraced(collector.url, env);
    await using clients = connectTo(daemon.url);
    for (let number = 0; number < 100; number++) await clients.filesystem.stat({ path: "/" });
    // 20 wait, the 10 that are on their way included.
    expect(await samples(daemon, "picod_trace_spans_dropped_total")).toEqual({ '{reason="queue_full"}': 80 });
    const stoppedAt = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - stoppedAt).toBeLessThan(6_000);
  });

  it("is sent what waits when the daemon stops", async () => {
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url, { OTEL_BSP_SCHEDULE_DELAY: "3600000" });
    await using clients = connectTo(daemon.url);
    await clients.filesystem.stat({ path: "/" });
    expect(collector.requests).toEqual([]);
    expect(await daemon.stop()).toBe(0);
    expect(collector.spans.map(({ name }) => name)).toEqual(["picod.v1.FilesystemService/Stat"]);
  });
});

describe("the trace of a tool call of MCP", () => {
  it("has it below its request, and what it spawns below it", async () => {
    await using collector = await startOtlpReceiver();
    await using daemon = await startTraced(collector.url);
    await using mcp = await connectMcp(daemon, { headers: { traceparent } });
    const { stdout } = await mcp.call("sandbox_exec", { command: "echo $TRACEPARENT" });
    const call = await collector.waitFor(byName("mcp/sandbox_exec"));
    const spawn = await collector.waitFor(byName("spawn"));
    const request = await collector.waitFor(({ spanId }) => spanId === call.parentSpanId);
    expect(request).toMatchObject({ name: "POST /mcp", traceId: TRACE_ID, parentSpanId: PARENT_ID });
    expect(call.attributes).toMatchObject({ "picod.code": "ok", "picod.process.id": expect.stringMatching(/^proc_/) });
    expect(spawn.parentSpanId).toBe(call.spanId);
    expect(stdout).toBe(`00-${TRACE_ID}-${spawn.spanId}-01\n`);
  });
});
