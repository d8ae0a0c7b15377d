import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { type Clients, connectTo, PROTOCOLS } from "../helpers/clients.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { ask, exchange, openSocket } from "./support/http1.js";
import { leavesNothing } from "./support/leaves-nothing.js";
import { EXECUTE, READ_FILE, STAT, WRITE_FILE } from "./support/messages.js";

const PROCEDURES = [EXECUTE, STAT, READ_FILE, WRITE_FILE];
const EXPLANATION = "missing or wrong access token: expected the header Authorization: Bearer <token>";
const GIBIBYTE = 1024 ** 3;

const BAD_AUTHORIZATIONS: readonly (readonly [title: string, authorization: string | undefined])[] = [
  ["no token", undefined],
  ["an empty header", ""],
  ["a wrong token", "Bearer wrong"],
  ["the beginning of the token", `Bearer ${TOKEN.slice(0, -1)}`],
  ["the token and more", `Bearer ${TOKEN}x`],
  ["another scheme", `Basic ${Buffer.from(`picod:${TOKEN}`).toString("base64")}`],
  ["no scheme", TOKEN],
  ["a scheme without a token", "Bearer"],
  ["a scheme and a space", "Bearer "],
  ["two tokens", `Bearer ${TOKEN} ${TOKEN}`],
  ["a list of tokens", `Bearer ${TOKEN}, Bearer ${TOKEN}`],
  ["15 KiB of token", `Bearer ${"x".repeat(15 * 1024)}`],
];

describe("a request without the right token", () => {
  it.each(BAD_AUTHORIZATIONS)("is refused in the protocol that it speaks: %s", async (_title, authorization) => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      for (const path of PROCEDURES) await isRefused(daemon, path, authorization);
    });
    expect(
      daemon.logs.filter(({ msg }) => msg === "call ended").every(({ code }) => code === "unauthenticated" || code === "ok"),
    ).toBe(true);
  });

  it.each(PROTOCOLS)("tells every client code and reason: %s", async (protocol) => {
    await using daemon = await startDaemon();
    for (const token of [null, "wrong"]) {
      await using clients = connectTo(daemon.url, { protocol, token });
      for (const [title, call] of calls(clients)) {
        const error = ConnectError.from(
          await call().then(
            () => new Error("no error"),
            (reason: unknown) => reason,
          ),
        );
        expect.soft([Code[error.code], error.rawMessage], title).toEqual(["Unauthenticated", EXPLANATION]);
      }
    }
  });

  it.each(["/picod.v1.FilesystemService/WriteFile", "/metrics", "/no/such/path", "/healthz/../metrics"])(
    "is refused although it announces 1 GiB: %s",
    async (path) => {
      await using daemon = await startDaemon();
      const head = `POST ${path} HTTP/1.1\r\nhost: picod\r\ncontent-type: application/connect+proto\r\ncontent-length: ${GIBIBYTE}\r\n`;
      await leavesNothing(daemon, async () => {
        for (const sent of [Buffer.alloc(0), Buffer.alloc(1024 * 1024)]) {
          const socket = await openSocket(daemon);
          socket.setEncoding("latin1").write(`${head}\r\n`);
          socket.write(sent);
          await expect(once(socket, "data")).resolves.toEqual([expect.stringContaining(EXPLANATION)]);
          socket.destroy();
        }
      });
    },
  );

  it("gets 401 and not 100 when it asks before it sends", async () => {
    await using daemon = await startDaemon();
    const request = [
      "POST /picod.v1.ProcessService/Execute HTTP/1.1",
      "host: picod",
      "content-type: application/json",
      "content-length: 20",
      "expect: 100-continue",
    ];
    const refused = await exchange(daemon, `${request.join("\r\n")}\r\n\r\n`);
    expect(refused).toMatch(/^HTTP\/1.1 401 /);
    expect(refused).toContain("www-authenticate: Bearer\r\n");
    expect(refused).not.toContain("100 Continue");

    const socket = await openSocket(daemon);
    socket.write(`${[...request, `authorization: Bearer ${TOKEN}`].join("\r\n")}\r\n\r\n`);
    await expect(once(socket.setEncoding("latin1"), "data")).resolves.toEqual(["HTTP/1.1 100 Continue\r\n\r\n"]);
    socket.write('{"command": "true"} ');
    await expect(once(socket, "data")).resolves.toEqual([expect.stringMatching(/^HTTP\/1.1 200 OK/)]);
    socket.destroy();
  });

  it("costs no memory however many announce a large body", async () => {
    await using daemon = await startDaemon();
    await leavesNothing(daemon, async () => {
      // Node's client refuses answers while too much of its own is queued.
      const session = connectHttp2(daemon.url, { maxSessionMemory: 256 });
      const statuses = Array.from({ length: 200 }, async () => {
        const stream = session.request({
          ":method": "POST",
          ":path": WRITE_FILE,
          "content-type": "application/grpc",
          te: "trailers",
        });
        stream.on("error", () => undefined).write(Buffer.alloc(256 * 1024));
        const [headers] = await once(stream, "response");
        stream.close();
        return headers["grpc-status"];
      });
      expect(new Set(await Promise.all(statuses))).toEqual(new Set([String(Code.Unauthenticated)]));
      session.destroy();
    });
  });

  it("is refused when its header has 1 MiB", async () => {
    await using daemon = await startDaemon();
    const authorization = `Bearer ${"x".repeat(1024 * 1024)}`;
    await leavesNothing(daemon, async () => {
      await expect(
        exchange(daemon, `POST ${STAT} HTTP/1.1\r\nhost: picod\r\nauthorization: ${authorization}\r\n\r\n`),
      ).resolves.toMatch(/^(HTTP\/1.1 431 Request Header Fields Too Large|$)/);
      const session = connectHttp2(daemon.url);
      const stream = session.on("error", () => undefined).request({ ":method": "POST", ":path": STAT, authorization });
      const outcome = await Promise.race([once(stream, "response"), once(stream, "close"), once(stream, "error")]).catch(
        () => undefined,
      );
      expect(outcome).not.toMatchObject([{ ":status": 200 }]);
      session.destroy();
    });
  });
});

/** Each protocol has a way of its own to say it; the media type decides. */
async function isRefused(daemon: Daemon, path: string, authorization: string | undefined): Promise<void> {
  const post = (contentType: string) =>
    ask(
      daemon,
      path,
      { method: "POST", headers: { "content-type": contentType, ...(authorization === undefined ? {} : { authorization }) } },
      "{}",
    );
  const label = `${path} with ${authorization?.slice(0, 50)}`;
  for (const contentType of ["application/json", "application/proto", "text/plain"]) {
    const unary = await post(contentType);
    expect.soft(unary, label).toMatchObject({ status: 401, headers: { "www-authenticate": "Bearer", connection: "close" } });
    expect.soft(JSON.parse(unary.body), label).toEqual({ code: "unauthenticated", message: EXPLANATION });
  }
  const stream = await post("application/connect+json");
  expect.soft(stream, label).toMatchObject({ status: 200, headers: { "content-type": "application/connect+json" } });
  expect.soft(stream.body.charCodeAt(0), label).toBe(2);
  expect.soft(JSON.parse(stream.body.slice(5)), label).toEqual({ error: { code: "unauthenticated", message: EXPLANATION } });
  for (const contentType of ["application/grpc", "application/grpc-web+proto"]) {
    const { status, headers, body } = await post(contentType);
    expect.soft({ status, body, contentType: headers["content-type"] }, label).toEqual({ status: 200, body: "", contentType });
    expect
      .soft([headers["grpc-status"], decodeURIComponent(String(headers["grpc-message"]))], label)
      .toEqual(["16", EXPLANATION]);
  }
}

function calls({ filesystem, process }: Clients): [title: string, call: () => Promise<unknown>][] {
  async function* upload() {
    yield { request: { case: "metadata" as const, value: { path: "/tmp/refused" } } };
    yield { request: { case: "chunk" as const, value: Buffer.alloc(1024 * 1024) } };
  }
  async function read() {
    for await (const _ of filesystem.readFile({ path: "/etc/passwd" }));
  }
  return [
    ["Execute", () => process.execute({ command: "true" })],
    ["Stat", () => filesystem.stat({ path: "/" })],
    ["ReadFile", read],
    ["WriteFile", () => filesystem.writeFile(upload())],
  ];
}
