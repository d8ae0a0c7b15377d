import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { ConnectError, createClient } from "@connectrpc/connect";
import { Process } from "../../src/gen/envd/process/process_pb.js";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { ProcessService as Sandboxd } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { connectMcp } from "../mcp/connect.js";
import { type Clients, connectTo } from "./clients.js";
import { type Daemon, type DaemonOptions, startDaemon } from "./start-daemon.js";
import { temporaryDirectory } from "./temporary-directory.js";
import { askAs } from "./with-token.js";

export const CANARY = "canary-7d1f0a";

/** How a command went: a decision of the daemon, or what it printed. */
export interface Ran {
  /** Reason of a refusal; undefined: it was started. */
  readonly reason: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly exitCode: number;
  /** Both streams. */
  readonly output: string;
}

export type Facade = "Execute" | "Start" | "REST" | "E2B" | "sandboxd" | "AgentCube" | "MCP";
export const FACADES: readonly Facade[] = ["Execute", "Start", "REST", "E2B", "sandboxd", "AgentCube", "MCP"];

export interface Confined extends AsyncDisposable {
  readonly daemon: Daemon;
  /** Real path; `workspace` in it is granted, and `outside` with the canary is not. */
  readonly base: string;
  readonly workspace: string;
  readonly canary: string;
  readonly audit: string;
  /** One line of a shell, with the token of that caller. */
  run(token: string, facade: Facade, line: string): Promise<Ran>;
  /** One program with its arguments, through gRPC's Execute. */
  execute(token: string, request: object): Promise<Ran>;
  clients(token: string): Clients;
}

/** Every caller is called like its capability and its token: `listed` may run some programs, `free` all, `operator` is not confined. */
export function policyOf(base: string, more = ""): string {
  const files = `read_paths = ["${base}/workspace/**"]\nwrite_paths = ["${base}/workspace/**"]`;
  return `
daemon_token = "operator"
[capabilities.operator.permissions.filesystem]
read_paths = ["/**"]
write_paths = ["/**"]
[capabilities.operator.permissions.shell]
env = ["*"]
[capabilities.operator.permissions.network]
allowed_domains = ["*"]

[capabilities.free.permissions]
users = ["*"]
[capabilities.free.permissions.filesystem]
${files}
[capabilities.free.permissions.shell]
working_directory = "${base}/workspace"
env = ["CI", "GIT_*"]
[capabilities.free.permissions.network]
allowed_domains = ["example.invalid"]

[capabilities.listed.permissions.filesystem]
${files}
[capabilities.listed.permissions.shell]
allowed_commands = ["ls", "git", "make", "xargs", "find", "env", "cp", "ln", "tee", "chmod", "python3", "sleep"]
working_directory = "${base}/workspace"
env = ["CI", "GIT_*"]
[capabilities.listed.permissions.network]
allowed_domains = []
[capabilities.listed.limits]
timeout_seconds = 20
max_processes = 4

[capabilities.other.permissions]
users = ["*"]
[capabilities.other.permissions.filesystem]
${files}
[capabilities.other.permissions.shell]
[capabilities.other.permissions.network]
allowed_domains = ["*"]
${more}`;
}

/** A daemon with a policy, and callers for all of its capabilities. Use with `await using`. */
export async function startConfined(
  policy: (base: string) => string = policyOf,
  { args = [], ...options }: DaemonOptions = {},
  names: readonly string[] = ["operator", "free", "listed", "other"],
): Promise<Confined> {
  const directory = temporaryDirectory();
  const base = realpathSync(directory.path);
  for (const name of ["workspace", "outside"]) mkdirSync(`${base}/${name}`);
  const canary = `${base}/outside/canary`;
  writeFileSync(canary, CANARY);
  const callers = names.map((name) => ({
    name,
    token: name,
    scopes: ["files:read", "files:write", "process", "process:read"],
    capability: name,
  }));
  writeFileSync(`${base}/scopes.json`, JSON.stringify({ callers }), { mode: 0o600 });
  writeFileSync(`${base}/policy.toml`, policy(base));
  const audit = `${base}/audit.log`;
  const files = ["--scopes-file", `${base}/scopes.json`, "--policy", `${base}/policy.toml`, "--audit-log", audit];
  // Programs of the system, not those of whoever runs the tests.
  const env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
  const daemon = await startDaemon({ env, ...options, args: [...files, "--workspace", `${base}/workspace`, ...args] });
  const connections = new Map<string, Clients>();
  const clients = (token: string) => {
    const known = connections.get(token) ?? connectTo(daemon.url, { token });
    connections.set(token, known);
    return known;
  };
  return {
    daemon,
    base,
    workspace: `${base}/workspace`,
    canary,
    audit,
    clients,
    run: (token, facade, line) => RUNNERS[facade](daemon, clients(token), token, line),
    execute: (token, request) => rpc(async () => toRan(await clients(token).process.execute(request))),
    async [Symbol.asyncDispose]() {
      for (const each of connections.values()) await each[Symbol.asyncDispose]();
      await daemon[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    },
  };
}

type Runner = (daemon: Daemon, clients: Clients, token: string, line: string) => Promise<Ran>;

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

const RUNNERS: Readonly<Record<Facade, Runner>> = {
  Execute: (_daemon, clients, _token, command) => rpc(async () => toRan(await clients.process.execute({ command }))),

  Start: (_daemon, clients, _token, command) =>
    rpc(async () => {
      let [output, exitCode] = ["", -1];
      for await (const { event } of clients.process.start({ command })) {
        if (event?.event.case === "output") output += text(event.event.value.output.value);
        if (event?.event.case === "ended") exitCode = event.event.value.outcome?.exitCode ?? -1;
      }
      return { reason: undefined, metadata: {}, exitCode, output };
    }),

  async REST(daemon, _clients, token, command) {
    const started = await askAs(daemon, token, "/v1/processes", { command, stdin: false });
    if (started.status !== 201) return refusal(started.body);
    const { id } = JSON.parse(started.body);
    const read = (stream: string) =>
      askAs(daemon, token, `/v1/processes/${id}/output?stream=${stream}&follow=true`, undefined, "GET");
    const [stdout, stderr] = [await read("stdout"), await read("stderr")];
    const ended = JSON.parse((await askAs(daemon, token, `/v1/processes/${id}`, undefined, "GET")).body);
    return { reason: undefined, metadata: {}, exitCode: ended.exit_code, output: stdout.body + stderr.body };
  },

  E2B: (_daemon, clients, _token, line) =>
    rpc(async () => {
      let [output, exitCode] = ["", -1];
      const process = { cmd: "/bin/bash", args: ["-l", "-c", line] };
      for await (const { event } of createClient(Process, clients.transport).start({ process })) {
        if (event?.event.case === "data") output += text(event.event.value.output.value as Uint8Array);
        if (event?.event.case === "end") exitCode = event.event.value.exitCode;
      }
      return { reason: undefined, metadata: {}, exitCode, output };
    }),

  sandboxd: (_daemon, clients, _token, line) =>
    rpc(async () => {
      const client = createClient(Sandboxd, clients.transport);
      const { stdout, stderr, exitCode } = await client.execute({ config: { command: ["/bin/sh", "-c", line] } });
      return { reason: undefined, metadata: {}, exitCode, output: text(stdout) + text(stderr) };
    }),

  async AgentCube(daemon, _clients, token, line) {
    const { status, body } = await askAs(daemon, token, "/api/execute", { command: ["bash", "-c", line] });
    if (status !== 200) return refusal(body);
    const { stdout, stderr, exit_code: exitCode } = JSON.parse(body);
    return { reason: undefined, metadata: {}, exitCode, output: stdout + stderr };
  },

  async MCP(daemon, _clients, token, command) {
    await using mcp = await connectMcp(daemon, { token });
    const { isError, content, structuredContent, _meta } = await mcp.tryCall("sandbox_exec", { command });
    if (isError) return refusal(JSON.stringify([content, _meta]));
    const { stdout, stderr, exit_code: exitCode } = structuredContent as { stdout: string; stderr: string; exit_code: number };
    return { reason: undefined, metadata: {}, exitCode, output: stdout + stderr };
  },
};

function toRan({ stdout, stderr, exitCode }: { stdout: string; stderr: string; exitCode: number }): Ran {
  return { reason: undefined, metadata: {}, exitCode, output: stdout + stderr };
}

async function rpc(run: () => Promise<Ran>): Promise<Ran> {
  try {
    return await run();
  } catch (error) {
    const { rawMessage, code, ...rest } = ConnectError.from(error);
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    if (info === undefined)
      return { reason: `code ${code} ${JSON.stringify(rest)}`, metadata: {}, exitCode: -1, output: rawMessage };
    return { reason: info.reason, metadata: info.metadata, exitCode: -1, output: rawMessage };
  }
}

function refusal(body: string): Ran {
  return { reason: /denied by capability/.test(body) ? "POLICY_DENIED" : body, metadata: {}, exitCode: -1, output: body };
}

/** Counts who connects to a port of this machine. Use with `await using`. */
export async function startListener(): Promise<AsyncDisposable & { readonly port: number; readonly connections: () => number }> {
  let connections = 0;
  const server: Server = createServer((socket) => {
    connections++;
    // Whoever does not read does not see the end.
    socket.on("error", () => undefined).resume();
    socket.end(CANARY);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
