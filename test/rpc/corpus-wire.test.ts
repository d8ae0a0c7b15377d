import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { ask, exchange, openSocket } from "./support/http1.js";
import { leavesNothing } from "./support/leaves-nothing.js";
import { EXECUTE, envelope, READ_FILE, STAT, WRITE_FILE } from "./support/messages.js";
import { CANCEL, encodeHeaders, FLAG, FRAME, frame, PREFACE, postHeaders, RawHttp2, rstStream } from "./support/raw-http2.js";

const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
const JSON_TYPE = { "content-type": "application/json", ...AUTHORIZATION };

/** Bytes as a client may send them, and how the answer begins; empty where the connection just ends. */
const RAW: readonly (readonly [title: string, bytes: string | Uint8Array, answer: RegExp])[] = [
  ["garbage", randomBytes(4096).fill(0xff, 0, 1), /^(HTTP\/1.1 400|$)/],
  ["a TLS hello", Buffer.from("16030100a5010000a10303", "hex"), /^(HTTP\/1.1 400|$)/],
  ["NULs", Buffer.alloc(1024), /^(HTTP\/1.1 400|$)/],
  ["an unknown method", "FROB / HTTP/1.1\r\nhost: x\r\n\r\n", /^HTTP\/1.1 400/],
  ["a version of the future", "GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n", /^HTTP\/1.1 (400|505)/],
  ["a bad Host", "GET /healthz HTTP/1.1\r\nhost: [\r\nconnection: close\r\n\r\n", /^HTTP\/1.1 200/],
  ["a Host with a bad port", `POST ${STAT} HTTP/1.1\r\nhost: x:99999\r\nconnection: close\r\n\r\n`, /^HTTP\/1.1 401/],
  ["HTTP/1.0 without a Host", "GET /healthz HTTP/1.0\r\n\r\n", /^HTTP\/1.1 200/],
  ["HTTP/1.1 without a Host", "GET /healthz HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400/],
  [
    "HTTP/1.0 for an RPC",
    `POST ${STAT} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    /^HTTP\/1.1 401/,
  ],
  ["an asterisk", "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", /^HTTP\/1.1 400 .*invalid request target: it is not a path/s],
  ["an absolute target", "GET http://x/healthz HTTP/1.1\r\nhost: x\r\n\r\n", /^HTTP\/1.1 400 .*invalid request target/s],
  ["CONNECT", "CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n", /^$/],
  [
    "an Upgrade to h2c",
    "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade, close\r\nupgrade: h2c\r\n\r\n",
    /^HTTP\/1.1 200/,
  ],
  [
    "both lengths",
    `POST ${STAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1.1 400/,
  ],
  ["a negative length", `POST ${STAT} HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n`, /^HTTP\/1.1 400/],
  ["another transfer coding", `POST ${STAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n`, /^(HTTP\/1.1 (400|401)|$)/],
  ["a newline in a header", "GET /healthz HTTP/1.1\r\nhost: x\r\na: b\nc\r\n\r\n", /^HTTP\/1.1 400/],
  ["too many headers", `GET /metrics HTTP/1.1\r\nhost: x\r\n${"a: b\r\n".repeat(5000)}\r\n`, /^HTTP\/1.1 431/],
  [
    "an expectation of another kind",
    `POST ${STAT} HTTP/1.1\r\nhost: x\r\nexpect: miracles\r\nconnection: close\r\n\r\n`,
    /^HTTP\/1.1 417/,
  ],
  [
    "a content type that no header can carry",
    `POST ${STAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\x80\r\ncontent-length: 0\r\n\r\n`,
    /^HTTP\/1.1 200 .*grpc-status: 16/s,
  ],
  [
    "a request id that no header can carry",
    "GET /healthz HTTP/1.1\r\nhost: x\r\nx-request-id: a\x80 b\r\nconnection: close\r\n\r\n",
    /^HTTP\/1.1 200/,
  ],
];

describe("bytes that are not a request", () => {
  it("are answered as HTTP has it, and leave nothing behind", async () => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (const [title, bytes, answer] of RAW) {
        const encoded = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
        // Nobody waits for the rest of what is no request.
        const socket = await openSocket(daemon);
        let received = "";
        socket.setEncoding("latin1").on("data", (text: string) => {
          received += text;
        });
        const closed = new Promise((resolve) => socket.once("close", resolve));
        socket.end(encoded);
        await closed;
        expect.soft(received, title).toMatch(answer);
      }
    });
  });

  it("half an HTTP/2 preface is closed after a while, one sent byte by byte is served", async () => {
    await using daemon = await startDaemon();
    const started = performance.now();
    const held = await Promise.all(["P", "PRI * HTTP/2.0\r\n\r\nSM", ""].map((bytes) => exchange(daemon, bytes)));
    expect(held).toEqual(["", "", ""]);
    expect(performance.now() - started).toBeGreaterThan(4_000);
    const socket = (await openSocket(daemon)).setNoDelay();
    for (const byte of Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)])) {
      socket.write(Buffer.of(byte));
      await ask(daemon, "/healthz");
    }
    const [settings] = (await once(socket, "data")) as [Buffer];
    expect(settings.readUInt8(3)).toBe(FRAME.settings);
    socket.destroy();
  });

  it("headers that trickle in are given up", { timeout: 60_000 }, async () => {
    await using daemon = await startDaemon();
    const socket = await openSocket(daemon);
    const closed = new Promise((resolve) => socket.resume().once("close", resolve));
    socket.write("GET /healthz HTTP/1.1\r\n");
    const timer = setInterval(() => socket.write("a: b\r\n"), 500);
    await closed;
    clearInterval(timer);
  });
});

/** Requests of an authorized caller that no RPC can be made of. */
const MALFORMED: readonly (readonly [
  title: string,
  path: string,
  headers: Record<string, string>,
  body: string | Uint8Array,
  status: number,
  answer: RegExp,
])[] = [
  ["malformed JSON", EXECUTE, JSON_TYPE, "{", 400, /"invalid_argument".*JSON/s],
  ["JSON of another type", EXECUTE, JSON_TYPE, '{"command": 5}', 400, /"invalid_argument".*command/s],
  ["no body", EXECUTE, JSON_TYPE, "", 400, /"invalid_argument"/],
  [
    "malformed protobuf",
    EXECUTE,
    { ...AUTHORIZATION, "content-type": "application/proto" },
    Buffer.alloc(64, 0xff),
    500,
    /"internal","message":"parse binary/,
  ],
  ["an unknown compression", EXECUTE, { ...JSON_TYPE, "content-encoding": "zstd" }, "{}", 501, /unknown compression \\?"zstd/],
  ["bad gzip", EXECUTE, { ...JSON_TYPE, "content-encoding": "gzip" }, "no gzip", 400, /"invalid_argument"/],
  [
    "a gzip bomb",
    EXECUTE,
    { ...JSON_TYPE, "content-encoding": "gzip" },
    gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20)),
    429,
    /"resource_exhausted"/,
  ],
  [
    "a malformed timeout",
    EXECUTE,
    { ...JSON_TYPE, "connect-timeout-ms": "soon" },
    "{}",
    400,
    /invalid connect timeout value: soon/,
  ],
  [
    "another content type",
    EXECUTE,
    { ...AUTHORIZATION, "content-type": "text/plain" },
    "{}",
    415,
    /^unsupported content type: "text\/plain".*\n$/,
  ],
  ["no content type", EXECUTE, AUTHORIZATION, "{}", 415, /^unsupported content type: "".*application\/json/],
  ["a unary type for a stream", READ_FILE, JSON_TYPE, "{}", 415, /ReadFile takes application\/connect\+json/],
  [
    "an unknown method",
    "/picod.v1.ProcessService/Frob",
    JSON_TYPE,
    "{}",
    404,
    /"unimplemented","message":"no such procedure or path: \/picod/,
  ],
  ["an unknown service", "/picod.v9.ProcessService/Execute", JSON_TYPE, "{}", 404, /no such procedure or path/],
  ["a method in lower case", "/picod.v1.ProcessService/execute", JSON_TYPE, "{}", 404, /no such procedure or path/],
  ["a POST on a page", "/healthz", JSON_TYPE, "{}", 405, /\/healthz takes GET and HEAD/],
  [
    "a stream message of 4 GiB",
    WRITE_FILE,
    { ...AUTHORIZATION, "content-type": "application/connect+proto" },
    Buffer.from("00ffffffff", "hex"),
    200,
    /"resource_exhausted".*larger than/s,
  ],
  [
    "a stream that ends in a message",
    WRITE_FILE,
    { ...AUTHORIZATION, "content-type": "application/connect+proto" },
    Buffer.from("0000000010", "hex"),
    200,
    /"invalid_argument"/,
  ],
  [
    "a compressed message without compression",
    WRITE_FILE,
    { ...AUTHORIZATION, "content-type": "application/connect+proto" },
    envelope(Buffer.from("x"), 1),
    200,
    /"internal".*compress/s,
  ],
  [
    "two messages for one",
    READ_FILE,
    { ...AUTHORIZATION, "content-type": "application/connect+proto" },
    Buffer.concat([envelope(Buffer.alloc(0)), envelope(Buffer.alloc(0))]),
    200,
    /"unimplemented".*extra input/s,
  ],
  [
    "a stream both ways over HTTP/1.1",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    { "content-type": "application/connect+proto" },
    "",
    200,
    /needs HTTP\/2/,
  ],
];

describe("a malformed request with the right token", () => {
  it("is refused with code and reason, and leaves nothing behind", async () => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (const [title, path, headers, body, status, answer] of MALFORMED) {
        const got = await ask(daemon, path, { method: "POST", headers }, body);
        expect.soft({ status: got.status, body: got.body }, title).toEqual({ status, body: expect.stringMatching(answer) });
      }
    });
  });

  it("is refused when it is a GET", async () => {
    await using daemon = await startDaemon();
    for (const path of [EXECUTE, READ_FILE]) {
      const got = await ask(daemon, `${path}?message={}`, { headers: AUTHORIZATION });
      expect(got).toMatchObject({ status: 405, headers: { allow: "POST" }, body: `${path} takes POST\n` });
    }
    await expect(ask(daemon, "/none", { headers: AUTHORIZATION })).resolves.toMatchObject({
      status: 404,
      body: '{"code":"not_found","message":"no such procedure or path: /none"}',
    });
  });

  it("costs no memory when it announces 4 GiB and sends nothing", async () => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (const [contentType, length, body] of [
        ["application/proto", 4 * 1024 ** 3, ""],
        ["application/connect+proto", 100, "\0\xff\xff\xff\xff"],
        ["application/json", 10, "{"],
      ] as const) {
        const socket = (await openSocket(daemon)).resume();
        socket.write(
          `POST ${EXECUTE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\ncontent-type: ${contentType}\r\ncontent-length: ${length}\r\n\r\n${body}`,
        );
        await ask(daemon, "/healthz");
        socket.destroy();
      }
    });
  });
});

const UNAUTHORIZED = encodeHeaders(postHeaders(STAT, "application/grpc"));
const RESETS = 100_000;
const BATCH = 500;

/** What one connection sends until the daemon ends it, which it may. */
const FLOODS: readonly (readonly [title: string, next: (round: number) => Buffer])[] = [
  ["streams that are reset at once", (round) => resets(round * BATCH, UNAUTHORIZED)],
  [
    "calls that are cancelled at once",
    (round) => resets(round * BATCH, encodeHeaders(postHeaders(EXECUTE, "application/grpc", Object.entries(AUTHORIZATION)))),
  ],
  ["pings", () => Buffer.concat(Array.from({ length: BATCH }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))))],
  [
    "settings",
    () => Buffer.concat(Array.from({ length: BATCH }, () => frame(FRAME.settings, 0, 0, Buffer.from("000300000064", "hex")))),
  ],
  ["a header block without an end", (round) => continuation(round)],
  ["empty data", (round) => emptyData(round)],
];

describe("a flood over HTTP/2", () => {
  it.each(FLOODS)("of %s leaves the daemon as it was", { timeout: 120_000 }, async (_title, next) => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (let sent = 0; sent < RESETS; ) {
        using raw = await RawHttp2.open(daemon.port);
        for (let round = 0; sent < RESETS && !raw.socket.destroyed; round++, sent += BATCH) {
          if (!raw.socket.write(next(round))) await Promise.race([once(raw.socket, "drain").catch(() => undefined), raw.closed]);
        }
      }
    });
  });

  it.each([
    [
      "a bad authority",
      [
        [":method", "POST"],
        [":scheme", "http"],
        [":authority", "a b:["],
        [":path", STAT],
      ],
    ],
    [
      "no path",
      [
        [":method", "POST"],
        [":scheme", "http"],
        [":authority", "x"],
      ],
    ],
    [
      "a path that is none",
      [
        [":method", "OPTIONS"],
        [":scheme", "http"],
        [":authority", "x"],
        [":path", "*"],
      ],
    ],
    [
      "CONNECT",
      [
        [":method", "CONNECT"],
        [":authority", "x:80"],
      ],
    ],
    ["a header of 1 MiB", [...postHeaders(STAT, "application/grpc"), ["a", "x".repeat(1024 * 1024)]]],
    ["10,000 headers", [...postHeaders(STAT, "application/grpc"), ...Array.from({ length: 10_000 }, () => ["a", "b"] as const)]],
    ["a header with a newline", [...postHeaders(STAT, "application/grpc"), ["a", "b\r\nc: d"]]],
    ["a header in upper case", [...postHeaders(STAT, "application/grpc"), ["A", "b"]]],
  ] as const)("%s ends its stream or connection at most", async (_title, headers) => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      using raw = await RawHttp2.open(daemon.port);
      const block = encodeHeaders(headers);
      const first = block.subarray(0, 16_384);
      const rest = Array.from({ length: Math.ceil(block.length / 16_384) - 1 }, (_, at) =>
        block.subarray((at + 1) * 16_384, (at + 2) * 16_384),
      );
      raw.send(
        frame(FRAME.headers, FLAG.endStream | (rest.length === 0 ? FLAG.endHeaders : 0), 1, first),
        ...rest.map((part, at) => frame(FRAME.continuation, at === rest.length - 1 ? FLAG.endHeaders : 0, 1, part)),
      );
      await ask(daemon, "/healthz");
    });
  });
});

function resets(from: number, headers: Buffer): Buffer {
  const streams = Array.from({ length: BATCH }, (_, at) => 2 * (from + at) + 1);
  return Buffer.concat(streams.flatMap((id) => [frame(FRAME.headers, FLAG.endHeaders, id, headers), rstStream(id, CANCEL)]));
}

function continuation(round: number): Buffer {
  const begin = round === 0 ? [frame(FRAME.headers, 0, 1, UNAUTHORIZED)] : [];
  const field = encodeHeaders([["a", "b"]]);
  return Buffer.concat([...begin, ...Array.from({ length: BATCH }, () => frame(FRAME.continuation, 0, 1, field))]);
}

function emptyData(round: number): Buffer {
  const begin = round === 0 ? [frame(FRAME.headers, FLAG.endHeaders, 1, UNAUTHORIZED)] : [];
  return Buffer.concat([...begin, ...Array.from({ length: BATCH }, () => frame(FRAME.data, 0, 1))]);
}
