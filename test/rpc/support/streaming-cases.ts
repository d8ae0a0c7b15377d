import { truncateSync, writeFileSync } from "node:fs";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code, createClient } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus } from "../../../src/gen/grpc/health/v1/health_pb.js";
import { ServerReflection, type ServerReflectionRequestSchema } from "../../../src/gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../src/gen/grpc/reflection/v1alpha/reflection_pb.js";
import type { WriteFileRequestSchema } from "../../../src/gen/picod/v1/filesystem_pb.js";
import {
  Outcome_Reason,
  type ProcessEvent,
  type StreamInputRequestSchema,
  WatchProcessesRequestSchema,
} from "../../../src/gen/picod/v1/process_pb.js";
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

function bigFile(directory: string): string {
  const path = `${directory}/big`;
  writeFileSync(path, "");
  truncateSync(path, 1024 ** 3);
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
    const iterator = filesystem.readFile({ path: bigFile(directory) }, { signal })[Symbol.asyncIterator]();
    const first = iterator.next();
    const rest = first
      .then(() => new Promise((resolve) => signal.addEventListener("abort", resolve)))
      .then(async () => {
        while (!(await iterator.next()).done);
      });
    return { first, rest };
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
  START,
  ATTACH,
  WATCH_PROCESSES,
  STREAM_INPUT,
  WATCH,
  reflection(ServerReflection),
  // The same messages under another name.
  reflection(ServerReflectionAlpha as unknown as typeof ServerReflection),
];
