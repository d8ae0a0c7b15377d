import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, it } from "vitest";
import type { WriteFileRequestSchema } from "../../src/gen/picod/v1/filesystem_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { leavesNothing } from "./support/leaves-nothing.js";

type WriteRequest = MessageInitShape<typeof WriteFileRequestSchema>;
type Bad = readonly [title: string, call: (clients: Clients) => Promise<unknown>, code: Code, message: RegExp];

const MEBIBYTE = 1024 * 1024;
/** None of them makes it. */
const directory = temporaryDirectory();
const FILE = join(directory.path, "x");
const LONG = `/${"a/".repeat(MEBIBYTE / 2)}`;

const metadata = (path: string, more = {}): WriteRequest => ({ request: { case: "metadata", value: { path, ...more } } });
const chunk = (content: string): WriteRequest => ({ request: { case: "chunk", value: Buffer.from(content) } });

async function* sequence(...requests: readonly WriteRequest[]) {
  yield* requests;
}

const write =
  (...requests: readonly WriteRequest[]) =>
  ({ filesystem }: Clients) =>
    filesystem.writeFile(sequence(...requests));

async function readAll({ filesystem }: Clients, request: Parameters<Clients["filesystem"]["readFile"]>[0]): Promise<void> {
  for await (const _ of filesystem.readFile(request));
}

/** What is wrong with a path is told by every method that takes one. */
const BAD_PATHS: readonly (readonly [title: string, path: string, code: Code, message: RegExp])[] = [
  ["an empty path", "", Code.InvalidArgument, /invalid path: it is empty/],
  ["a NUL byte in a path", "/tmp/a\0b", Code.InvalidArgument, /invalid path: "\/tmp\/a\\u0000b": it holds a NUL byte/],
  ["a path of 1 MiB", LONG, Code.InvalidArgument, /invalid path: .*: it is 104\d{4} bytes long, more than 4095/],
  ["a name of 300 bytes", `/tmp/${"n".repeat(300)}`, Code.InvalidArgument, /name too long/],
  ["a path through a file", "/etc/passwd/x", Code.FailedPrecondition, /\/etc\/passwd\/x: not a directory/],
];

const ON_FILES: readonly Bad[] = [
  ...BAD_PATHS.flatMap(([title, path, code, message]): Bad[] => [
    [`Stat: ${title}`, ({ filesystem }) => filesystem.stat({ path }), code, message],
    [`ReadFile: ${title}`, (clients) => readAll(clients, { path }), code, message],
    [`WriteFile: ${title}`, write(metadata(path), chunk("x")), code, message],
  ]),
  [
    "Stat: an unknown user",
    ({ filesystem }) => filesystem.stat({ path: "/", user: "nobody-at-all" }),
    Code.InvalidArgument,
    /no such user: "nobody-at-all"/,
  ],
  [
    "ReadFile: an unknown user",
    (clients) => readAll(clients, { path: "/etc/passwd", user: "\0" }),
    Code.InvalidArgument,
    /no such user: "\\u0000"/,
  ],
  ["WriteFile: an unknown user", write(metadata(FILE, { user: "nobody-at-all" })), Code.InvalidArgument, /no such user/],
  [
    "Stat: a missing file",
    ({ filesystem }) => filesystem.stat({ path: "/missing/x" }),
    Code.NotFound,
    /\/missing\/x: no such file or directory/,
  ],
  [
    "ReadFile: a missing file",
    (clients) => readAll(clients, { path: "/missing/x" }),
    Code.NotFound,
    /\/missing\/x: no such file/,
  ],
  ["ReadFile: a directory", (clients) => readAll(clients, { path: "/" }), Code.FailedPrecondition, /it is a directory/],
  [
    "ReadFile: an offset beyond the end",
    (clients) => readAll(clients, { path: "/etc/passwd", offset: 2n ** 60n }),
    Code.OutOfRange,
    /beyond/,
  ],
  [
    "ReadFile: the largest offset",
    (clients) => readAll(clients, { path: "/etc/passwd", offset: 2n ** 64n - 1n }),
    Code.OutOfRange,
    /beyond/,
  ],
  ["WriteFile: a chunk first", write(chunk("x"), metadata(FILE)), Code.InvalidArgument, /expected metadata first, got chunk/],
  [
    "WriteFile: a message without content first",
    write({}),
    Code.InvalidArgument,
    /expected metadata first, got a message without content/,
  ],
  [
    "WriteFile: two metadata messages",
    write(metadata(FILE), metadata(FILE)),
    Code.InvalidArgument,
    /expected a chunk, got metadata/,
  ],
  ["WriteFile: no message at all", write(), Code.InvalidArgument, /ended without a metadata message/],
  ["WriteFile: a mode out of range", write(metadata(FILE, { mode: 0o10000 })), Code.InvalidArgument, /invalid mode: 010000/],
  [
    "WriteFile: a malformed checksum",
    write(metadata(FILE, { sha256: "xyz" })),
    Code.InvalidArgument,
    /invalid sha256: expected 64 hex/,
  ],
  ["WriteFile: an unknown durability", write(metadata(FILE, { durability: 7 })), Code.InvalidArgument, /invalid durability: 7/],
  [
    "WriteFile: a chunk over the limit",
    write(metadata(FILE), chunk("x".repeat(5 * MEBIBYTE))),
    Code.ResourceExhausted,
    /larger than configured/,
  ],
];

const ON_COMMANDS: readonly Bad[] = [
  ["no command", ({ process }) => process.execute({}), Code.InvalidArgument, /give either command or argv/],
  [
    "command and argv",
    ({ process }) => process.execute({ command: "true", argv: ["true"] }),
    Code.InvalidArgument,
    /give either command or argv/,
  ],
  ["an empty program", ({ process }) => process.execute({ argv: [""] }), Code.InvalidArgument, /invalid command: it is empty/],
  [
    "a NUL byte in the command",
    ({ process }) => process.execute({ command: "echo \0" }),
    Code.InvalidArgument,
    /it holds a NUL byte/,
  ],
  [
    "a NUL byte in an argument",
    ({ process }) => process.execute({ argv: ["echo", "\0"] }),
    Code.InvalidArgument,
    /it holds a NUL byte/,
  ],
  [
    "an argument over the system's limit",
    ({ process }) => process.execute({ command: `: ${"x".repeat(MEBIBYTE)}` }),
    Code.InvalidArgument,
    /exceed the system's limit/,
  ],
  [
    "an unknown user",
    ({ process }) => process.execute({ command: "true", user: "nobody-at-all" }),
    Code.InvalidArgument,
    /no such user/,
  ],
  [
    "a missing working directory",
    ({ process }) => process.execute({ command: "true", cwd: "/missing" }),
    Code.NotFound,
    /cannot enter the working directory \/missing: no such file/,
  ],
  [
    "a file as working directory",
    ({ process }) => process.execute({ command: "true", cwd: "/etc/passwd" }),
    Code.FailedPrecondition,
    /\/etc\/passwd: not a directory/,
  ],
  [
    "a working directory of 1 MiB",
    ({ process }) => process.execute({ command: "true", cwd: LONG }),
    Code.InvalidArgument,
    /more than 4095/,
  ],
  [
    "a NUL byte in the working directory",
    ({ process }) => process.execute({ command: "true", cwd: "/\0" }),
    Code.InvalidArgument,
    /NUL byte/,
  ],
  [
    "a negative timeout",
    ({ process }) => process.execute({ command: "true", timeout: -1 }),
    Code.InvalidArgument,
    /invalid timeout: -1/,
  ],
  [
    "a timeout that is no number",
    ({ process }) => process.execute({ command: "true", timeout: Number.NaN }),
    Code.InvalidArgument,
    /invalid timeout: NaN/,
  ],
  [
    "an environment name with =",
    ({ process }) => process.execute({ command: "true", env: { "A=B": "" } }),
    Code.InvalidArgument,
    /invalid env: "A=B"/,
  ],
  [
    "an environment value with NUL",
    ({ process }) => process.execute({ command: "true", env: { A: "\0" } }),
    Code.InvalidArgument,
    /invalid env: "A"/,
  ],
  [
    "too much output asked for",
    ({ process }) => process.execute({ command: "true", maxOutputBytes: 2n ** 40n }),
    Code.InvalidArgument,
    /invalid max_output_bytes/,
  ],
  ["a malformed id", ({ process }) => process.execute({ command: "true", id: "a b" }), Code.InvalidArgument, /invalid id/],
  [
    "a request over the limit",
    ({ process }) => process.execute({ command: "cat", stdin: Buffer.alloc(5 * MEBIBYTE) }),
    Code.ResourceExhausted,
    /larger than configured/,
  ],
];

afterAll(() => {
  expect(readdirSync(directory.path)).toEqual([]);
  directory[Symbol.dispose]();
});

describe.each(["gRPC", "Connect over HTTP/1.1", "Connect over HTTP/2"] as const)("over %s", (protocol) => {
  it("every malformed request is refused with a message that names the cause, and leaves nothing behind", async () => {
    await using daemon = await startDaemon();
    const filesInTmp = readdirSync("/tmp").filter((name) => name.startsWith(".picod") || name === "x");
    await leavesNothing(daemon, async () => {
      await using clients = connectTo(daemon.url, { protocol });
      for (const [title, call, code, message] of [...ON_FILES, ...ON_COMMANDS]) {
        const error = ConnectError.from(
          await call(clients).then(
            () => new Error("no error"),
            (reason: unknown) => reason,
          ),
        );
        expect
          .soft({ code: Code[error.code], message: error.rawMessage }, title)
          .toEqual({ code: Code[code], message: expect.stringMatching(message) });
      }
    });
    expect(readdirSync("/tmp").filter((name) => name.startsWith(".picod") || name === "x")).toEqual(filesInTmp);
  });

  it("odd requests that are right are served", async () => {
    await using daemon = await startDaemon();
    using directory = temporaryDirectory();
    await leavesNothing(daemon, async () => {
      await using clients = connectTo(daemon.url, { protocol });
      const { filesystem, process } = clients;
      const path = `${directory.path}/./a/../empty`;
      await process.execute({ argv: ["mkdir", "-p", `${directory.path}/a`] });
      await expect(filesystem.writeFile(sequence(metadata(path)))).resolves.toMatchObject({ bytesWritten: 0n });
      expect(readFileSync(path, "utf8")).toBe("");
      await expect(filesystem.stat({ path: "~" })).resolves.toMatchObject({ entry: { type: 2 } });
      for (const cwd of ["..", "./", "~", "~root", "/tmp//.", directory.path]) {
        await expect(process.execute({ command: "test -d .", cwd }), cwd).resolves.toMatchObject({ exitCode: 0 });
      }
      await expect(process.execute({ argv: ["no-such-program"] })).resolves.toMatchObject({
        exitCode: 127,
        outcome: { reason: 6 },
      });
    });
  });
});
