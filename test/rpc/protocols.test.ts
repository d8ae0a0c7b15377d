import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.js";
import { ServerReflection, type ServerReflectionResponse } from "../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../src/gen/grpc/reflection/v1alpha/reflection_pb.js";
import { ReadFileRequestSchema } from "../../src/gen/picod/v1/filesystem_pb.js";
import { ExecuteRequestSchema, ProcessService } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo, PROTOCOLS } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "./support/http1.js";
import { EXECUTE, encode, envelope, READ_FILE, STAT, uploadBody, WRITE_FILE } from "./support/messages.js";
import { openFilesIn } from "./support/open-files.js";

const run = promisify(execFile);
const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };

async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  return ConnectError.from(
    await call.then(
      () => new Error("no error"),
      (reason: unknown) => reason,
    ),
  );
}

/** A command whose tree has a member that left its session; both can be told by the directory in their command line. */
const tree = (directory: string) =>
  `touch ${directory}/started; setsid sh -c 'sleep 1000; : ${directory}' & sh -c 'sleep 1000; : ${directory}'`;

describe.each(PROTOCOLS)("%s", (protocol) => {
  it("carries every RPC, large messages and odd bytes", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const path = `${directory.path}/ünïcode 文件`;
    const content = Buffer.from(Array.from({ length: 3 * 1024 * 1024 }, (_, at) => (at * 7) % 256));
    async function* upload() {
      yield { request: { case: "metadata" as const, value: { path, size: BigInt(content.length) } } };
      yield { request: { case: "chunk" as const, value: content } };
    }
    await expect(clients.filesystem.writeFile(upload())).resolves.toMatchObject({ bytesWritten: BigInt(content.length) });
    await expect(clients.filesystem.stat({ path })).resolves.toMatchObject({ entry: { path, size: BigInt(content.length) } });
    const chunks: Uint8Array[] = [];
    for await (const { response } of clients.filesystem.readFile({ path }))
      if (response.case === "chunk") chunks.push(response.value);
    expect(Buffer.concat(chunks).equals(content)).toBe(true);
    const stdin = Buffer.from("x".repeat(1024 * 1024));
    await expect(clients.process.execute({ command: "cat", stdin })).resolves.toMatchObject({ stdout: stdin.toString() });
  });

  it("ends the whole tree of a command when the deadline passes, and when the caller cancels", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
    await using clients = connectTo(daemon.url, { protocol });
    for (const way of ["deadline", "cancel"]) {
      using directory = temporaryDirectory();
      const cancel = new AbortController();
      const options = way === "deadline" ? { timeoutMs: 500 } : { signal: cancel.signal };
      const error = errorOf(clients.process.execute({ command: tree(directory.path), timeout: 0 }, options));
      await eventually("the command runs", () => existsSync(`${directory.path}/started`));
      cancel.abort();
      expect(Code[(await error).code]).toBe(way === "deadline" ? "DeadlineExceeded" : "Canceled");
      await eventually("its tree is gone", () => processesNamed(directory.path).length === 0 && daemon.children().length === 0);
    }
    const codes = () => daemon.logs.filter(({ procedure }) => procedure === EXECUTE).map(({ code }) => code);
    await eventually("both calls are logged", () => codes().length === 2);
    expect(codes().toSorted()).toEqual(["canceled", expect.stringMatching(/canceled|deadline_exceeded/)]);
  });

  it("explains an error with google.rpc.ErrorInfo", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    const error = await errorOf(clients.filesystem.stat({ path: "/missing/ü" }));
    expect(error.code).toBe(Code.NotFound);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "ENOENT", domain: "picod", metadata: { path: "/missing/ü" } },
    ]);
  });

  it("echoes the request id and carries the trace into the command", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const ids: (string | null)[] = [];
    const onHeader = (headers: Headers) => void ids.push(headers.get("x-request-id"));
    const given = { headers: { traceparent, tracestate: "a=1,b=2", "x-request-id": "request-7" }, onHeader };
    await expect(clients.process.execute({ command: "echo $TRACEPARENT $TRACESTATE" }, given)).resolves.toMatchObject({
      stdout: `${traceparent} a=1,b=2\n`,
    });
    const malformed = { "x-request-id": "not a valid id", traceparent: traceparent.toUpperCase(), tracestate: "a=1" };
    await expect(
      clients.process.execute({ command: "echo $TRACEPARENT$TRACESTATE" }, { headers: malformed, onHeader }),
    ).resolves.toMatchObject({ stdout: "\n" });
    await clients.process.execute({ command: "true" }, { onHeader });
    expect(ids).toEqual(["request-7", expect.stringMatching(/^[0-9a-f-]{36}$/), expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    await daemon.waitForLog(({ requestId }) => requestId === "request-7");
  });

  it("takes deadlines that are longer than timers", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    for (const headers of [{ "grpc-timeout": "2592000S" }, { "connect-timeout-ms": "9999999999" }]) {
      await expect(clients.process.execute({ command: "sleep 0.1" }, { headers })).resolves.toMatchObject({ exitCode: 0 });
    }
  });

  it("tells the daemon's health", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol, token: null });
    const health = createClient(Health, clients.transport);
    await expect(health.check({})).resolves.toMatchObject({ status: 1 });
    await expect(health.check({ service: "picod.v1.ProcessService" })).resolves.toMatchObject({ status: 1 });
    expect((await errorOf(health.check({ service: "unknown" }))).code).toBe(Code.NotFound);
  });
});

describe("server reflection", () => {
  type Answer = ServerReflectionResponse["messageResponse"] | undefined;
  const LIST_SERVICES = { messageRequest: { case: "listServices" as const, value: "" } };
  const SERVICES = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "picod.v1.FilesystemService",
    "picod.v1.ProcessService",
    "process.v1.ProcessService",
  ];
  const E2B_SERVICES = ["filesystem.Filesystem", "process.Process"];
  const servicesIn = (answer: Answer) =>
    answer?.case === "listServicesResponse" ? answer.value.service.map(({ name }) => name).toSorted() : [];

  it.each([ServerReflection, ServerReflectionAlpha])("lists services and describes symbols: $typeName", async (service) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { token: null });
    const client = createClient(service as typeof ServerReflection, clients.transport);
    async function* requests() {
      yield LIST_SERVICES;
      yield { messageRequest: { case: "fileContainingSymbol" as const, value: "picod.v1.ProcessService.Execute" } };
      yield { messageRequest: { case: "fileByFilename" as const, value: "picod/v1/filesystem.proto" } };
      yield { messageRequest: { case: "fileContainingSymbol" as const, value: "no.such.Symbol" } };
    }
    const answers = [];
    for await (const { messageResponse } of client.serverReflectionInfo(requests())) answers.push(messageResponse);
    const [list, ...files] = answers;
    expect(servicesIn(list)).toEqual([...SERVICES, ...E2B_SERVICES].toSorted());
    expect(files.map((file) => file.case)).toEqual(["fileDescriptorResponse", "fileDescriptorResponse", "errorResponse"]);
  });

  it.each([
    { args: [], services: [...SERVICES, ...E2B_SERVICES] },
    { args: ["--no-envd"], services: SERVICES },
  ])("describes everything that it lists, with the arguments $args", async ({ args, services }) => {
    await using daemon = await startDaemon({ args });
    await using clients = connectTo(daemon.url, { token: null });
    const client = createClient(ServerReflection, clients.transport);
    async function* requests() {
      yield LIST_SERVICES;
      for (const value of services) yield { messageRequest: { case: "fileContainingSymbol" as const, value } };
    }
    const answers: Answer[] = [];
    for await (const { messageResponse } of client.serverReflectionInfo(requests())) answers.push(messageResponse);
    const [list, ...files] = answers;
    expect(servicesIn(list)).toEqual(services.toSorted());
    // As grpcurl does: what is sent for a name is all that is needed to call it.
    const described = files.map((answer, at) => {
      if (answer?.case !== "fileDescriptorResponse") return undefined;
      const sent = answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
      const [file, ...needed] = sent;
      if (file === undefined) return undefined;
      const registry = createFileRegistry(file, (path) => needed.find(({ name }) => name === path));
      return registry.getService(services[at] ?? "")?.typeName;
    });
    expect(described).toEqual(services);
  });
});

describe("gzip", () => {
  it("is taken of a request, and not made of an answer", async () => {
    await using daemon = await startDaemon();
    const common = {
      baseUrl: daemon.url,
      sendCompression: compressionGzip,
      acceptCompression: [compressionGzip],
      compressMinBytes: 0,
    };
    const nodeOptions = { agent: false as const };
    const stdin = Buffer.from("compressible ".repeat(10_000));
    for (const transport of [
      createGrpcTransport({ ...common }),
      createConnectTransport({ ...common, httpVersion: "1.1", nodeOptions }),
      createConnectTransport({ ...common, httpVersion: "1.1", nodeOptions, useBinaryFormat: false }),
    ]) {
      let encoding: string | null = null;
      const onHeader = (headers: Headers) => {
        encoding = headers.get("content-encoding");
      };
      const result = createClient(ProcessService, transport).execute(
        { command: "cat", stdin },
        { headers: AUTHORIZATION, onHeader },
      );
      await expect(result).resolves.toMatchObject({ stdout: stdin.toString() });
      expect(encoding).toBeNull();
    }
  });
});

describe("curl", () => {
  it.each([["--http1.1"], ["--http2-prior-knowledge"]])("runs a command with JSON (%s)", async (version) => {
    await using daemon = await startDaemon();
    const json = ["-H", "content-type: application/json", "-H", `authorization: Bearer ${TOKEN}`];
    const data = JSON.stringify({ command: 'echo "$A"; exit 3', env: { A: "b" } });
    const { stdout } = await run("curl", ["-sS", version, ...json, "-d", data, `${daemon.url}${EXECUTE}`]);
    expect(JSON.parse(stdout)).toMatchObject({ stdout: "b\n", exitCode: 3, outcome: { reason: "REASON_EXITED", exitCode: 3 } });
    const refused = await run("curl", [
      "-sS",
      version,
      "-i",
      "-H",
      "content-type: application/json",
      "-d",
      data,
      `${daemon.url}${STAT}`,
    ]);
    expect(refused.stdout).toMatch(/^HTTP\/\S+ 401.*"code":"unauthenticated"/s);
    const metrics = await run("curl", ["-sS", version, ...json.slice(2), `${daemon.url}/metrics`]);
    expect(metrics.stdout).toContain('picod_rpc_total{procedure="/picod.v1.ProcessService/Execute",code="ok"} 1');
  });
});

describe("plain HTTP", () => {
  it("tells that the daemon lives and is ready", async () => {
    await using daemon = await startDaemon();
    await expect(ask(daemon, "/healthz")).resolves.toMatchObject({ status: 200, body: '{"status":"ok"}' });
    await expect(ask(daemon, "/readyz?verbose")).resolves.toMatchObject({ status: 200, body: '{"status":"ok"}' });
    await expect(ask(daemon, "/healthz", { method: "HEAD" })).resolves.toMatchObject({ status: 200, body: "" });
    const { body } = await ask(daemon, "/health");
    expect(JSON.parse(body)).toMatchObject({ status: "ok", service: "PicoD", uptime: expect.stringMatching(/^[\d.]+s$/) });
  });
});

describe.each([
  ["2", "application/grpc"],
  ["1.1", "application/connect+proto"],
] as const)("a client that is killed (HTTP/%s)", (version, contentType) => {
  /** Resolves with what kills it. */
  function stall(daemon: Daemon, path: string, type: string, body: Uint8Array): () => void {
    const program = join(import.meta.dirname, "support/stalled-client.mjs");
    const args = [program, String(daemon.port), version, path, type, TOKEN, Buffer.from(body).toString("hex")];
    const child = spawn(process.execPath, args, { stdio: "ignore" });
    return () => void child.kill("SIGKILL");
  }

  it("leaves no command running", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
    using directory = temporaryDirectory();
    const request = encode(ExecuteRequestSchema, { command: tree(directory.path), timeout: 0 });
    const kill =
      version === "2"
        ? stall(daemon, EXECUTE, contentType, envelope(request))
        : stall(daemon, EXECUTE, "application/proto", request);
    await eventually("the command runs", () => existsSync(`${directory.path}/started`));
    kill();
    await eventually("its tree is gone", () => processesNamed(directory.path).length === 0 && daemon.children().length === 0);
  });

  it("leaves no file open that it read", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/big`;
    writeFileSync(path, "");
    truncateSync(path, 1024 ** 3);
    const kill = stall(daemon, READ_FILE, contentType, envelope(encode(ReadFileRequestSchema, { path })));
    await eventually("the file is open", () => openFilesIn(daemon, directory.path).length > 0);
    kill();
    await eventually("the file is closed", () => openFilesIn(daemon, directory.path).length === 0);
  });

  it("leaves the old content of the file that it wrote", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const kill = stall(daemon, WRITE_FILE, contentType, uploadBody(path, "new"));
    await eventually("the upload has begun", () => openFilesIn(daemon, directory.path).length > 0);
    kill();
    await eventually("its file is closed", () => openFilesIn(daemon, directory.path).length === 0);
    expect(readdirSync(directory.path)).toEqual(["file"]);
    expect(readFileSync(path, "utf8")).toBe("old");
  });
});
