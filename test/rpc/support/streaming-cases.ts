import { chmodSync, existsSync, mkdirSync, rmdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code, createClient } from "@connectrpc/connect";
import { Filesystem as EnvdFilesystem } from "../../../src/gen/envd/filesystem/filesystem_pb.js";
import {
  type StreamInputRequestSchema as EnvdInputSchema,
  Process as EnvdProcess,
} from "../../../src/gen/envd/process/process_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "../../../src/gen/grpc/health/v1/health_pb.js";
import { ServerReflection, type ServerReflectionRequestSchema } from "../../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../src/gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { WriteArchiveRequestSchema, WriteFileRequestSchema } from "../../../src/gen/picod/v1/filesystem_pb.js";
import {
  Outcome_Reason,
  type ProcessEvent,
  type StreamInputRequestSchema,
  WatchProcessesRequestSchema,
} from "../../../src/gen/picod/v1/process_pb.js";
import { ProcessService as SandboxdProcess } from "../../../src/gen/sandboxd/process/v1/process_pb.js";
import { type Clients, PROTOCOLS, type Protocol } from "../../helpers/clients.js";
import { eventually } from "../../helpers/eventually.js";

/** A call in progress: `first` is its first sign of life, `rest` its end. */
export interface Running {
  readonly first: Promise<unknown>;
  readonly rest: Promise<unknown>;
}

/** What the five cases of a streaming RPC need to know about it. */
export interface StreamingRpc {
  readonly procedure: string;
  readonly protocols: readonly Protocol[];
  /** Runs to a good end; rejects when an answer is wrong. */
  succeed(clients: Clients, directory: string): Promise<void>;
  readonly failFirst: { readonly code: Code; run(clients: Clients, directory: string): Promise<unknown> };
  readonly failLater: { readonly code: Code; run(clients: Clients, directory: string): Promise<unknown> };
  /** Starts a call that goes on until the signal aborts or the daemon ends it. */
  start(clients: Clients, directory: string, signal: AbortSignal): Running;
}

const OVER_PUBLIC_LIMIT = "x".repeat(65 * 1024);
const BOTH_WAYS = PROTOCOLS.filter((protocol) => !protocol.endsWith("HTTP/1.1"));

type InputRequest = MessageInitShape<typeof StreamInputRequestSchema>;
type WriteRequest = MessageInitShape<typeof WriteFileRequestSchema>;
type ArchiveRequest = MessageInitShape<typeof WriteArchiveRequestSchema>;
type ReflectionRequest = MessageInitShape<typeof ServerReflectionRequestSchema>;

const metadata = (path: string, more: object = {}): WriteRequest => ({ request: { case: "metadata", value: { path, ...more } } });
const chunk = (content: string): WriteRequest => ({ request: { case: "chunk", value: Buffer.from(content) } });
const listServices: ReflectionRequest = { messageRequest: { case: "listServices", value: "" } };

async function* sequence<T>(...messages: readonly T[]) {
  yield* messages;
}

/** Then silence for ever; to return would be a good end. */
async function* sequenceAndSilence<T>(...messages: readonly T[]) {
  yield* messages;
  await new Promise(() => undefined);
}

async function drain(messages: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of messages) count++;
  return count;
}

function follow(messages: AsyncIterable<unknown>): Running {
  const iterator = messages[Symbol.asyncIterator]();
  const first = iterator.next();
  const rest = first.then(async () => {
    while (!(await iterator.next()).done);
  });
  return { first, rest };
}

/** Takes the first message, and the rest once the signal has aborted. */
function paused(messages: AsyncIterable<unknown>, signal: AbortSignal): Running {
  const iterator = messages[Symbol.asyncIterator]();
  const first = iterator.next();
  const rest = first
    .then(() => new Promise((resolve) => signal.addEventListener("abort", resolve)))
    .then(async () => {
      while (!(await iterator.next()).done);
    });
  return { first, rest };
}

/** `stored`: takes room, since an archive has no content for a hole. */
function bigFile(directory: string, stored = false): string {
  const path = `${directory}/big`;
  writeFileSync(path, stored ? Buffer.alloc(64 * 1024 ** 2, "x") : "");
  if (!stored) truncateSync(path, 1024 ** 3);
  return path;
}

const READ_FILE: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/ReadFile",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    writeFileSync(`${directory}/small`, "content");
    const count = await drain(filesystem.readFile({ path: `${directory}/small` }));
    if (count !== 3) throw new Error(`${count} messages`);
  },
  failFirst: {
    code: Code.NotFound,
    run: ({ filesystem }, directory) => drain(filesystem.readFile({ path: `${directory}/missing` })),
  },
  failLater: {
    code: Code.Aborted,
    async run({ filesystem }, directory) {
      const path = bigFile(directory);
      for await (const { response } of filesystem.readFile({ path })) if (response.case === "metadata") truncateSync(path, 0);
    },
  },
  // The file is larger than all buffers on the way, and only its beginning is taken.
  start({ filesystem }, directory, signal) {
    return paused(filesystem.readFile({ path: bigFile(directory) }, { signal }), signal);
  },
};

const WRITE_FILE: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/WriteFile",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    const { bytesWritten } = await filesystem.writeFile(sequence(metadata(`${directory}/file`), chunk("content")));
    if (bytesWritten !== 7n) throw new Error(`${bytesWritten} bytes`);
  },
  failFirst: { code: Code.InvalidArgument, run: ({ filesystem }) => filesystem.writeFile(sequence(chunk("content"))) },
  failLater: {
    code: Code.InvalidArgument,
    run: ({ filesystem }, directory) =>
      filesystem.writeFile(sequence(metadata(`${directory}/file`, { size: 3n }), chunk("content"), chunk("and more"))),
  },
  start({ filesystem }, directory, signal) {
    const rest = filesystem.writeFile(sequenceAndSilence(metadata(`${directory}/file`), chunk("content")), { signal });
    return { first: Promise.resolve(), rest };
  },
};

/** Few entries, with paths and targets so long that no buffers on the way hold all of them: 11 MiB. */
function bigDirectory(directory: string): string {
  const path = `${directory}/big`;
  const deep = `${path}/${Array(15).fill("d".repeat(240)).join("/")}`;
  mkdirSync(deep, { recursive: true });
  const target = "t".repeat(4_000);
  for (let index = 0; index < 1_500; index++) symlinkSync(target, `${deep}/${index}`);
  return path;
}

const LIST_DIRECTORY: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/ListDirectory",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    mkdirSync(`${directory}/small/a/b`, { recursive: true });
    const names: string[] = [];
    for await (const { entries } of filesystem.listDirectory({ path: `${directory}/small`, depth: 0 }))
      names.push(...entries.map(({ name }) => name));
    if (names.join() !== "a,b") throw new Error(`${names}`);
  },
  failFirst: {
    code: Code.NotFound,
    run: ({ filesystem }, directory) => drain(filesystem.listDirectory({ path: `${directory}/missing` })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    async run({ filesystem }, directory) {
      const path = bigDirectory(directory);
      for await (const _ of filesystem.listDirectory({ path, depth: 0 }, { timeoutMs: 300 })) await sleep(50);
    },
  },
  start({ filesystem }, directory, signal) {
    return paused(filesystem.listDirectory({ path: bigDirectory(directory), depth: 0 }, { signal }), signal);
  },
};

const READ_ARCHIVE: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/ReadArchive",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    writeFileSync(`${directory}/small`, "content");
    const count = await drain(filesystem.readArchive({ path: `${directory}/small` }));
    if (count !== 3) throw new Error(`${count} messages`);
  },
  failFirst: {
    code: Code.NotFound,
    run: ({ filesystem }, directory) => drain(filesystem.readArchive({ path: `${directory}/missing` })),
  },
  failLater: {
    code: Code.Aborted,
    async run({ filesystem }, directory) {
      const path = bigFile(directory, true);
      let shrunk = false;
      for await (const { response } of filesystem.readArchive({ path })) {
        if (response.case !== "chunk" || shrunk) continue;
        shrunk = true;
        truncateSync(path, 0);
      }
    },
  },
  // As with ReadFile.
  start({ filesystem }, directory, signal) {
    return paused(filesystem.readArchive({ path: bigFile(directory, true) }, { signal }), signal);
  },
};

const archiveMetadata = (path: string, more: object = {}): ArchiveRequest => ({
  request: { case: "metadata", value: { path, ...more } },
});
const archiveChunk = (value: Uint8Array<ArrayBuffer>): ArchiveRequest => ({ request: { case: "chunk", value } });
/** Of an archive without entries. */
const ARCHIVE_END = new Uint8Array(1024);

const WRITE_ARCHIVE: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/WriteArchive",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    const { entries } = await filesystem.writeArchive(sequence(archiveMetadata(`${directory}/to`), archiveChunk(ARCHIVE_END)));
    if (entries !== 0n) throw new Error(`${entries} entries`);
  },
  failFirst: {
    code: Code.InvalidArgument,
    run: ({ filesystem }) => filesystem.writeArchive(sequence(archiveChunk(ARCHIVE_END))),
  },
  failLater: {
    code: Code.InvalidArgument,
    run: ({ filesystem }, directory) =>
      filesystem.writeArchive(sequence(archiveMetadata(`${directory}/to`), archiveChunk(ARCHIVE_END.slice(1000)))),
  },
  start({ filesystem }, directory, signal) {
    const messages = sequenceAndSilence(
      archiveMetadata(`${directory}/to`, { atomic: true }),
      archiveChunk(ARCHIVE_END.slice(1000)),
    );
    return { first: Promise.resolve(), rest: filesystem.writeArchive(messages, { signal }) };
  },
};

const FIND: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/Find",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    mkdirSync(`${directory}/small/a/b`, { recursive: true });
    const names: string[] = [];
    for await (const { entries, summary } of filesystem.find({ path: `${directory}/small` }))
      names.push(...entries.map(({ name }) => name), ...(summary === undefined ? [] : ["summary"]));
    if (names.join() !== "a,b,summary") throw new Error(`${names}`);
  },
  failFirst: {
    code: Code.InvalidArgument,
    run: ({ filesystem }, directory) => drain(filesystem.find({ path: directory, include: ["["] })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    async run({ filesystem }, directory) {
      for await (const _ of filesystem.find({ path: bigDirectory(directory) }, { timeoutMs: 300 })) await sleep(50);
    },
  },
  start({ filesystem }, directory, signal) {
    return paused(filesystem.find({ path: bigDirectory(directory) }, { signal }), signal);
  },
};

/** All its lines match, and what they make is larger than all buffers on the way. */
function bigText(directory: string) {
  const path = `${directory}/big`;
  writeFileSync(path, `${"needle ".repeat(100)}\n`.repeat(100_000));
  return { path, pattern: "needle", maxMatches: 1_000_000n };
}

const SEARCH: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/Search",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    writeFileSync(`${directory}/small`, "a needle\nnone\n");
    const kinds: (string | undefined)[] = [];
    for await (const { event } of filesystem.search({ path: `${directory}/small`, pattern: "needle" })) kinds.push(event.case);
    if (kinds.join() !== "match,summary") throw new Error(`${kinds}`);
  },
  failFirst: {
    code: Code.InvalidArgument,
    run: ({ filesystem }, directory) => drain(filesystem.search({ path: directory, pattern: "(", regex: true })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    async run({ filesystem }, directory) {
      for await (const _ of filesystem.search(bigText(directory), { timeoutMs: 500 })) await sleep(50);
    },
  },
  start({ filesystem }, directory, signal) {
    return paused(filesystem.search(bigText(directory), { signal }), signal);
  },
};

const WATCH_DIRECTORY: StreamingRpc = {
  procedure: "/picod.v1.FilesystemService/WatchDirectory",
  protocols: PROTOCOLS,
  async succeed({ filesystem }, directory) {
    const path = `${directory}/watched`;
    mkdirSync(path, { recursive: true });
    const kinds: string[] = [];
    for await (const { event } of filesystem.watchDirectory({ path })) {
      kinds.push(event.case ?? "");
      if (event.case === "ready") rmdirSync(path);
    }
    if (kinds.join() !== "ready,ended") throw new Error(`events ${kinds}`);
  },
  failFirst: {
    code: Code.NotFound,
    run: ({ filesystem }, directory) => drain(filesystem.watchDirectory({ path: `${directory}/missing` })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    run: ({ filesystem }, directory) => drain(filesystem.watchDirectory({ path: directory }, { timeoutMs: 300 })),
  },
  start: ({ filesystem }, directory, signal) => follow(filesystem.watchDirectory({ path: directory }, { signal })),
};

/** Says what it is about to say and then nothing: its follower has to wait. */
const TALKS_ONCE = { command: "echo once; exec sleep 1000" };

const bySelector = (id: string) => ({ process: { selector: { case: "id" as const, value: id } } });

async function assertFollowed(messages: AsyncIterable<{ event?: ProcessEvent | undefined }>, text: string): Promise<void> {
  const kinds: string[] = [];
  let output = "";
  for await (const { event } of messages) {
    kinds.push(event?.event.case ?? "");
    if (event?.event.case === "output") output += Buffer.from(event.event.value.output.value ?? []).toString();
    if (event?.event.case === "ended" && event.event.value.outcome?.reason !== Outcome_Reason.EXITED) throw new Error("no exit");
  }
  if (kinds[0] !== "started" || kinds.at(-1) !== "ended" || output !== text) throw new Error(`${kinds}: ${output}`);
}

/** Starts a process and leaves it running. Returns its id. */
async function startedProcess(clients: Clients, request: { command: string; stdin?: boolean }): Promise<string> {
  for await (const { event } of clients.process.start(request)) {
    if (event?.event.case === "started") return event.event.value.process?.id ?? "";
  }
  throw new Error("it has not started");
}

const START: StreamingRpc = {
  procedure: "/picod.v1.ProcessService/Start",
  protocols: PROTOCOLS,
  succeed: ({ process }) => assertFollowed(process.start({ command: "echo done" }), "done\n"),
  failFirst: { code: Code.InvalidArgument, run: ({ process }) => drain(process.start({})) },
  failLater: { code: Code.DeadlineExceeded, run: ({ process }) => drain(process.start(TALKS_ONCE, { timeoutMs: 300 })) },
  start: ({ process }, _directory, signal) => follow(process.start(TALKS_ONCE, { signal })),
};

const ATTACH: StreamingRpc = {
  procedure: "/picod.v1.ProcessService/Attach",
  protocols: PROTOCOLS,
  async succeed(clients) {
    const id = await startedProcess(clients, { command: "echo done" });
    await assertFollowed(clients.process.attach(bySelector(id)), "done\n");
  },
  failFirst: { code: Code.NotFound, run: ({ process }) => drain(process.attach(bySelector("none"))) },
  failLater: {
    code: Code.DeadlineExceeded,
    async run(clients) {
      const id = await startedProcess(clients, TALKS_ONCE);
      await drain(clients.process.attach(bySelector(id), { timeoutMs: 300 }));
    },
  },
  start(clients, _directory, signal) {
    const first = startedProcess(clients, TALKS_ONCE);
    async function* attach() {
      yield* clients.process.attach(bySelector(await first), { signal });
    }
    return follow(attach());
  },
};

/** With a field that the daemon does not know: this request has none that could be wrong. */
function overMessageLimit() {
  const request = create(WatchProcessesRequestSchema);
  request.$unknown = [
    { no: 1000, wireType: WireType.LengthDelimited, data: new BinaryWriter().bytes(Buffer.alloc(5_000_000)).finish() },
  ];
  return request;
}

const WATCH_PROCESSES: StreamingRpc = {
  procedure: "/picod.v1.ProcessService/WatchProcesses",
  protocols: PROTOCOLS,
  async succeed({ process }) {
    for await (const { event } of process.watchProcesses({})) {
      if (event.case === "keepalive") return;
      throw new Error(`event ${event.case}`);
    }
  },
  failFirst: {
    code: Code.ResourceExhausted,
    run: ({ process }) => drain(process.watchProcesses(overMessageLimit())),
  },
  failLater: { code: Code.DeadlineExceeded, run: ({ process }) => drain(process.watchProcesses({}, { timeoutMs: 300 })) },
  start: ({ process }, _directory, signal) => follow(process.watchProcesses({}, { signal })),
};

const target = (id: string): InputRequest => ({ request: { case: "target", value: { ...bySelector(id), close: true } } });
const data = (text: string): InputRequest => ({ request: { case: "data", value: Buffer.from(text) } });
const SLEEPS = { command: "exec sleep 1000", stdin: true };

const STREAM_INPUT: StreamingRpc = {
  procedure: "/picod.v1.ProcessService/StreamInput",
  protocols: PROTOCOLS,
  async succeed(clients) {
    const id = await startedProcess(clients, { command: "cat", stdin: true });
    const { inputBytes } = await clients.process.streamInput(sequence(target(id), data("typed "), data("text")));
    if (inputBytes !== 10n) throw new Error(`${inputBytes} bytes`);
    await assertFollowed(clients.process.attach(bySelector(id)), "typed text");
  },
  failFirst: { code: Code.InvalidArgument, run: ({ process }) => process.streamInput(sequence(data("text"))) },
  failLater: {
    code: Code.InvalidArgument,
    async run(clients) {
      const id = await startedProcess(clients, SLEEPS);
      await clients.process.streamInput(sequence(target(id), data("text"), target(id)));
    },
  },
  start(clients, _directory, signal) {
    const started = startedProcess(clients, SLEEPS);
    const rest = started.then((id) => clients.process.streamInput(sequenceAndSilence(target(id), data("text")), { signal }));
    const first = started.then((id) =>
      eventually("input has arrived", async () => {
        const { process } = await clients.process.getProcess(bySelector(id));
        return process?.inputBytes === 4n;
      }),
    );
    return { first, rest };
  },
};

const sandboxd = ({ transport }: Clients) => createClient(SandboxdProcess, transport);
const SANDBOXD_TALKS_ONCE = { config: { command: ["sh", "-c", TALKS_ONCE.command] } };

const SANDBOXD_START: StreamingRpc = {
  procedure: "/process.v1.ProcessService/Start",
  protocols: PROTOCOLS,
  async succeed(clients) {
    const kinds: unknown[] = [];
    for await (const { event } of sandboxd(clients).start({ config: { command: ["echo", "done"] } })) kinds.push(event.case);
    if (kinds.join() !== "init,stdout,exit") throw new Error(kinds.join());
  },
  failFirst: { code: Code.InvalidArgument, run: (clients) => drain(sandboxd(clients).start({})) },
  failLater: {
    code: Code.DeadlineExceeded,
    run: (clients) => drain(sandboxd(clients).start(SANDBOXD_TALKS_ONCE, { timeoutMs: 300 })),
  },
  start: (clients, _directory, signal) => follow(sandboxd(clients).start(SANDBOXD_TALKS_ONCE, { signal })),
};

const envdFiles = ({ transport }: Clients) => createClient(EnvdFilesystem, transport);

const ENVD_WATCH_DIR: StreamingRpc = {
  procedure: "/filesystem.Filesystem/WatchDir",
  protocols: PROTOCOLS,
  async succeed(clients, directory) {
    for await (const { event } of envdFiles(clients).watchDir({ path: directory })) {
      if (event.case === "filesystem" && event.value.name === "file") return;
      writeFileSync(`${directory}/file`, "content");
    }
  },
  failFirst: {
    code: Code.NotFound,
    run: (clients, directory) => drain(envdFiles(clients).watchDir({ path: `${directory}/missing` })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    run: (clients, directory) => drain(envdFiles(clients).watchDir({ path: directory }, { timeoutMs: 300 })),
  },
  start: (clients, directory, signal) => follow(envdFiles(clients).watchDir({ path: directory }, { signal })),
};

const envd = ({ transport }: Clients) => createClient(EnvdProcess, transport);
const shell = (command: string, more: object = {}) => ({ process: { cmd: "/bin/sh", args: ["-c", command] }, ...more });

/** Starts a process with E2B's service and leaves it running. Returns what selects it. */
async function startedByEnvd(clients: Clients, command: string) {
  for await (const { event } of envd(clients).start(shell(command))) {
    if (event?.event.case === "start") return { process: { selector: { case: "pid" as const, value: event.event.value.pid } } };
  }
  throw new Error("it has not started");
}

async function assertKinds(
  messages: AsyncIterable<{ event?: { event: { case?: string | undefined } } | undefined }>,
  kinds: string,
) {
  const seen: unknown[] = [];
  for await (const { event } of messages) seen.push(event?.event.case);
  if (seen.join() !== kinds) throw new Error(seen.join());
}

const ENVD_START: StreamingRpc = {
  procedure: "/process.Process/Start",
  protocols: PROTOCOLS,
  succeed: (clients) => assertKinds(envd(clients).start(shell("echo done")), "start,data,end"),
  failFirst: {
    code: Code.InvalidArgument,
    run: (clients) => drain(envd(clients).start({ process: { cmd: "true", cwd: "/no/such" } })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    run: (clients) => drain(envd(clients).start(shell(TALKS_ONCE.command), { timeoutMs: 300 })),
  },
  start: (clients, _directory, signal) => follow(envd(clients).start(shell(TALKS_ONCE.command), { signal })),
};

const ENVD_CONNECT: StreamingRpc = {
  procedure: "/process.Process/Connect",
  protocols: PROTOCOLS,
  async succeed(clients) {
    const selected = await startedByEnvd(clients, "echo done");
    const headers = { "x-picod-replay": "all" };
    await assertKinds(envd(clients).connect(selected, { headers }), "start,data,end");
  },
  failFirst: { code: Code.Unimplemented, run: (clients) => drain(envd(clients).connect({})) },
  failLater: {
    code: Code.DeadlineExceeded,
    async run(clients) {
      await drain(envd(clients).connect(await startedByEnvd(clients, TALKS_ONCE.command), { timeoutMs: 300 }));
    },
  },
  start(clients, _directory, signal) {
    const started = startedByEnvd(clients, TALKS_ONCE.command);
    async function* connected() {
      yield* envd(clients).connect(await started, { signal });
    }
    return follow(connected());
  },
};

type EnvdInput = MessageInitShape<typeof EnvdInputSchema>;
const envdData = (text: string): EnvdInput => ({
  event: { case: "data", value: { input: { input: { case: "stdin", value: Buffer.from(text) } } } },
});

const ENVD_STREAM_INPUT: StreamingRpc = {
  procedure: "/process.Process/StreamInput",
  protocols: PROTOCOLS,
  async succeed(clients) {
    const selected = await startedByEnvd(clients, "read line; echo $line");
    await envd(clients).streamInput(
      sequence<EnvdInput>(
        { event: { case: "start", value: selected } },
        { event: { case: "keepalive", value: {} } },
        envdData("a\n"),
      ),
    );
    await assertKinds(envd(clients).connect(selected, { headers: { "x-picod-replay": "0" } }), "start,data,end");
  },
  failFirst: { code: Code.InvalidArgument, run: (clients) => envd(clients).streamInput(sequence(envdData("text"))) },
  failLater: {
    code: Code.Unimplemented,
    async run(clients) {
      const selected = await startedByEnvd(clients, "exec sleep 1000");
      await envd(clients).streamInput(sequence<EnvdInput>({ event: { case: "start", value: selected } }, envdData("text"), {}));
    },
  },
  start(clients, directory, signal) {
    // E2B's clients act as `user` where the machine has one.
    chmodSync(directory, 0o777);
    const started = startedByEnvd(clients, `read line; touch ${directory}/big; exec sleep 1000`);
    const rest = started.then((selected) =>
      envd(clients).streamInput(
        sequenceAndSilence<EnvdInput>({ event: { case: "start", value: selected } }, envdData("text\n")),
        { signal },
      ),
    );
    return { first: started.then(() => eventually("input has arrived", () => existsSync(`${directory}/big`))), rest };
  },
};

const WATCH: StreamingRpc = {
  procedure: "/grpc.health.v1.Health/Watch",
  protocols: PROTOCOLS,
  async succeed({ transport }) {
    for await (const { status } of createClient(Health, transport).watch({ service: "" })) {
      if (status === HealthCheckResponse_ServingStatus.SERVING) return;
      throw new Error(`status ${status}`);
    }
  },
  failFirst: {
    code: Code.ResourceExhausted,
    run: ({ transport }) => drain(createClient(Health, transport).watch({ service: OVER_PUBLIC_LIMIT })),
  },
  failLater: {
    code: Code.DeadlineExceeded,
    run: ({ transport }) => drain(createClient(Health, transport).watch({ service: "" }, { timeoutMs: 300 })),
  },
  start: ({ transport }, _directory, signal) => follow(createClient(Health, transport).watch({ service: "" }, { signal })),
};

function reflection(service: typeof ServerReflection): StreamingRpc {
  return {
    procedure: `/${service.typeName}/ServerReflectionInfo`,
    protocols: BOTH_WAYS,
    async succeed({ transport }) {
      const answers = createClient(service, transport).serverReflectionInfo(sequence(listServices, listServices));
      const count = await drain(answers);
      if (count !== 2) throw new Error(`${count} messages`);
    },
    failFirst: {
      code: Code.ResourceExhausted,
      run: ({ transport }) => drain(createClient(service, transport).serverReflectionInfo(sequence({ host: OVER_PUBLIC_LIMIT }))),
    },
    failLater: {
      code: Code.ResourceExhausted,
      run: ({ transport }) =>
        drain(
          createClient(service, transport).serverReflectionInfo(
            sequence<ReflectionRequest>(listServices, { host: OVER_PUBLIC_LIMIT }),
          ),
        ),
    },
    start: ({ transport }, _directory, signal) =>
      follow(createClient(service, transport).serverReflectionInfo(sequenceAndSilence(listServices), { signal })),
  };
}

/** Every RPC that streams; the audit checks that none is missing. */
export const STREAMING_RPCS: readonly StreamingRpc[] = [
  READ_FILE,
  WRITE_FILE,
  READ_ARCHIVE,
  WRITE_ARCHIVE,
  LIST_DIRECTORY,
  FIND,
  SEARCH,
  WATCH_DIRECTORY,
  START,
  ATTACH,
  WATCH_PROCESSES,
  STREAM_INPUT,
  SANDBOXD_START,
  ENVD_WATCH_DIR,
  ENVD_START,
  ENVD_CONNECT,
  ENVD_STREAM_INPUT,
  WATCH,
  reflection(ServerReflection),
  // The same messages under another name.
  reflection(ServerReflectionAlpha as unknown as typeof ServerReflection),
];
