import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ExecuteRequestSchema } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { ask } from "./support/http1.js";
import { leavesNothing } from "./support/leaves-nothing.js";
import { encode, envelope } from "./support/messages.js";

const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
const JSON_TYPE = { ...AUTHORIZATION, "content-type": "application/json" };
const PROTO = { ...AUTHORIZATION, "content-type": "application/proto" };
const OCTETS = { ...AUTHORIZATION, "content-type": "application/octet-stream" };
const FORM = { ...AUTHORIZATION, "content-type": "multipart/form-data; boundary=b" };
const NESTED = "[".repeat(100_000);
const MEBIBYTE = 1024 * 1024;

/** As E2B's clients name an account, beside the token. */
const as = (user: string) => ({
  "x-access-token": TOKEN,
  "content-type": "application/json",
  authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`,
});

type Row = readonly [
  title: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string | Uint8Array,
  status: number,
  answer: RegExp,
];

const SANDBOXD = "/process.v1.ProcessService";

const AGENT_SANDBOX: readonly Row[] = [
  ["malformed protobuf", "POST", `${SANDBOXD}/Execute`, PROTO, Buffer.alloc(64, 0xff), 500, /"internal","message":"parse binary/],
  ["a number for a message", "POST", `${SANDBOXD}/Execute`, JSON_TYPE, '{"config":5}', 400, /"invalid_argument".*ProcessConfig/],
  [
    "a line for a command",
    "POST",
    `${SANDBOXD}/Execute`,
    JSON_TYPE,
    '{"config":{"command":"ls"}}',
    400,
    /"invalid_argument".*command/,
  ],
  ["a nested command", "POST", `${SANDBOXD}/Execute`, JSON_TYPE, `{"config":{"command":${NESTED}`, 400, /"invalid_argument"/],
  ["a NUL in an argument", "POST", `${SANDBOXD}/Execute`, JSON_TYPE, '{"config":{"command":["a\\u0000"]}}', 400, /NUL/],
  ["a NUL in cwd", "POST", `${SANDBOXD}/Execute`, JSON_TYPE, '{"config":{"command":["true"],"cwd":"\\u0000"}}', 400, /NUL/],
  [
    "an argument of 200 KiB",
    "POST",
    `${SANDBOXD}/Execute`,
    JSON_TYPE,
    `{"config":{"command":["true","${"x".repeat(200_000)}"]}}`,
    400,
    /system's limit/,
  ],
  ["a process that never was", "POST", `${SANDBOXD}/WriteStdin`, JSON_TYPE, '{"processId":-1}', 404, /"process -1 not found"/],
  [
    "a process id of 64 bits",
    "POST",
    `${SANDBOXD}/WriteStdin`,
    JSON_TYPE,
    '{"processId":"4294967297"}',
    400,
    /"invalid_argument"/,
  ],
  [
    "a process that is none",
    "POST",
    `${SANDBOXD}/SendSignal`,
    JSON_TYPE,
    '{"signal":"SIGNAL_SIGHUP"}',
    404,
    /"process 0 not found"/,
  ],
  ["a size below zero", "POST", `${SANDBOXD}/ResizeTTY`, JSON_TYPE, '{"cols":-1}', 400, /"invalid_argument"/],
  ["a NUL in a path", "PUT", "/v1/files/a%00", OCTETS, "x", 400, /"INVALID_ARGUMENT"/],
  ["no form", "PUT", "/v1/files/a", FORM, "x", 400, /"invalid multipart body: it ended too early"/],
  ["an unknown user", "PUT", "/v1/files/a?user=nobody-at-all", OCTETS, "x", 400, /no such user/],
];

const AGENTCUBE: readonly Row[] = [
  [
    "a number for all",
    "POST",
    "/api/execute",
    JSON_TYPE,
    "5",
    400,
    /^\{"error":"invalid body: expected an object","code":400\}$/,
  ],
  ["a nested command", "POST", "/api/execute", JSON_TYPE, `{"command":${NESTED}`, 400, /"error":"invalid body: /],
  ["a list for the environment", "POST", "/api/execute", JSON_TYPE, '{"command":["true"],"env":["A=1"]}', 400, /invalid env/],
  [
    "a body of 5 MiB",
    "POST",
    "/api/execute",
    JSON_TYPE,
    `{"command":["${"x".repeat(5 * MEBIBYTE)}"]}`,
    400,
    /more than 4194304 bytes/,
  ],
  ["a NUL in a path", "POST", "/api/files", JSON_TYPE, '{"path":"a\\u0000","content":"eA=="}', 400, /NUL.*"code":400/],
  ["a list for all", "POST", "/api/files", JSON_TYPE, "[]", 400, /invalid body: expected an object/],
  ["a nested path", "POST", "/api/files", JSON_TYPE, `{"path":${NESTED}`, 400, /a value is too long/],
  ["no string for a name", "POST", "/api/files", JSON_TYPE, '{5:""}', 400, /the name of a member is a string/],
  [
    "two contents",
    "POST",
    "/api/files",
    JSON_TYPE,
    '{"path":"a","content":"eA==","content":"eA=="}',
    400,
    /more than one content/,
  ],
  ["no boundary", "POST", "/api/files", { ...FORM, "content-type": "multipart/form-data" }, "x", 400, /it has no boundary/],
  ["no form", "POST", "/api/files", FORM, "x", 400, /invalid multipart body: it ended too early/],
  [
    "a field of 70 KiB",
    "POST",
    "/api/files",
    FORM,
    `--b\r\ncontent-disposition: form-data; name="path"\r\n\r\n${"x".repeat(70_000)}\r\n--b--`,
    400,
    /too long/,
  ],
  ["a NUL in a path that is listed", "GET", "/api/files?path=%00", AUTHORIZATION, "", 400, /NUL/],
  ["half a percent sign", "GET", "/api/files/%2", AUTHORIZATION, "", 400, /invalid path/],
];

const E2B: readonly Row[] = [
  [
    "a number for a message",
    "POST",
    "/process.Process/SendInput",
    JSON_TYPE,
    '{"process":5}',
    400,
    /"invalid_argument".*process/,
  ],
  [
    "a pid of another type",
    "POST",
    "/process.Process/SendInput",
    JSON_TYPE,
    '{"process":{"pid":"x"}}',
    400,
    /"invalid_argument"/,
  ],
  ["a path of another type", "POST", "/filesystem.Filesystem/Stat", JSON_TYPE, '{"path":5}', 400, /"invalid_argument".*path/],
  [
    "malformed protobuf",
    "POST",
    "/process.Process/List",
    PROTO,
    Buffer.alloc(64, 0xff),
    500,
    /"internal","message":"parse binary/,
  ],
  [
    "an unknown user",
    "POST",
    "/process.Process/List",
    as("nobody-at-all"),
    "{}",
    401,
    /"unauthenticated".*invalid username: 'nobody-at-all'/,
  ],
  ["a user with a NUL", "POST", "/filesystem.Filesystem/Stat", as("root\0"), '{"path":"/"}', 401, /invalid username/],
  ["an unknown user of a file", "POST", "/files?path=/a&username=nobody-at-all", OCTETS, "x", 401, /unknown user nobody-at-all/],
  ["a NUL in a path", "POST", "/files?username=root&path=%00", OCTETS, "x", 400, /NUL/],
  ["no form", "POST", "/files?username=root&path=/a", FORM, "x", 500, /invalid multipart body/],
  [
    "a type of its own",
    "POST",
    "/files?username=root&path=/a",
    { ...OCTETS, "content-type": "text/plain" },
    "x",
    400,
    /content type/,
  ],
];

/** On every path before anything else is looked at. */
const LONG_HEADER: readonly Row[] = [
  `${SANDBOXD}/Execute`,
  "/v1/files/a",
  "/api/files",
  "/files?path=a",
  "/process.Process/List",
].map((path) => [`20 KiB of header for ${path}`, "POST", path, { ...JSON_TYPE, a: "x".repeat(20 * 1024) }, "", 431, /^$/]);

describe.each([
  ["agent-sandbox", AGENT_SANDBOX],
  ["AgentCube", AGENTCUBE],
  ["E2B", E2B],
  ["each", LONG_HEADER],
])("a malformed request in the words of %s", (_contract, rows) => {
  it("is refused as the contract has it, and leaves nothing behind", async () => {
    await using daemon = await startDaemon();
    // From then on AgentCube's workspace is open.
    await ask(daemon, "/api/files?path=.", { headers: AUTHORIZATION });
    await leavesNothing(daemon, async () => {
      for (const [title, method, path, headers, body, status, answer] of rows) {
        const got = await ask(daemon, path, { method, headers }, body);
        expect.soft({ status: got.status, body: got.body }, title).toEqual({ status, body: expect.stringMatching(answer) });
      }
    });
  });
});

const TRUE = encode(ExecuteRequestSchema, { config: { command: ["true"] } });

/** What a gRPC client could send to Execute of agent-sandbox. */
const FRAMES: readonly (readonly [
  title: string,
  headers: Record<string, string>,
  body: Uint8Array,
  code: Code | 0,
  message: RegExp,
])[] = [
  ["one message", {}, envelope(TRUE), 0, /^$/],
  ["a message in gzip", { "grpc-encoding": "gzip" }, envelope(gzipSync(TRUE), 1), 0, /^$/],
  ["no message", {}, Buffer.alloc(0), Code.Unimplemented, /./],
  ["two messages", {}, Buffer.concat([envelope(TRUE), envelope(TRUE)]), Code.Unimplemented, /./],
  ["half a message", {}, envelope(TRUE).subarray(0, 8), Code.InvalidArgument, /./],
  ["half a length", {}, Buffer.alloc(3), Code.InvalidArgument, /./],
  ["a message of 4 GiB", {}, Buffer.from("00ffffffff", "hex"), Code.ResourceExhausted, /larger than/],
  ["malformed protobuf", {}, envelope(Buffer.alloc(64, 0xff)), Code.Internal, /parse binary/],
  ["a compressed message of no coding", {}, envelope(TRUE, 1), Code.Internal, /compress/],
  ["a coding of no name", { "grpc-encoding": "zstd" }, envelope(TRUE), Code.Unimplemented, /zstd/],
  ["a timeout of no unit", { "grpc-timeout": "5" }, envelope(TRUE), Code.InvalidArgument, /timeout/],
];

async function overGrpc(daemon: Daemon, path: string, more: Record<string, string>, body: Uint8Array): Promise<[number, string]> {
  const session = connect(daemon.url);
  try {
    const headers = { ...AUTHORIZATION, "content-type": "application/grpc", te: "trailers", ...more };
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    let last: IncomingHttpHeaders = {};
    const keep = (received: IncomingHttpHeaders) => {
      last = received;
    };
    stream.on("response", keep).on("trailers", keep).resume().end(body);
    await once(stream, "close");
    return [Number(last["grpc-status"]), decodeURIComponent(String(last["grpc-message"] ?? ""))];
  } finally {
    session.destroy();
  }
}

describe("frames of gRPC for agent-sandbox's Execute", () => {
  it("are answered with a status each, and leave nothing behind", async () => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (const [title, headers, body, code, message] of FRAMES) {
        const got = await overGrpc(daemon, `${SANDBOXD}/Execute`, headers, body);
        expect.soft(got, title).toEqual([code, expect.stringMatching(message)]);
      }
    });
  });
});
