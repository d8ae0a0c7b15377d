import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, exchange, openSocket } from "../rpc/support/http1.js";
import { leavesNothing } from "../rpc/support/leaves-nothing.js";
import { EXECUTE, WRITE_FILE } from "../rpc/support/messages.js";
import { encodeHeaders, FLAG, FRAME, frame, postHeaders, RawHttp2 } from "../rpc/support/raw-http2.js";

function execute(command: string): string {
  const body = JSON.stringify({ command, timeout: 0 });
  const head = [`POST ${EXECUTE} HTTP/1.1`, "host: x", `authorization: Bearer ${TOKEN}`, "content-type: application/json"];
  return `${[...head, `content-length: ${Buffer.byteLength(body)}`].join("\r\n")}\r\n\r\n${body}`;
}

describe("a connection over HTTP/1.1", () => {
  it("serves pipelined requests in order", async () => {
    await using daemon = await startDaemon();
    const last = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    const received = await exchange(daemon, execute("sleep 0.3; echo first") + execute("echo second") + last);
    expect(received).toMatch(/first\\n.*second\\n.*"status":"ok"/s);
  });

  it("that drops ends the commands that wait behind another", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"] });
    using directory = temporaryDirectory();
    const socket = await openSocket(daemon);
    for (const name of ["a", "b", "c"]) socket.write(execute(`touch ${directory.path}/${name}; sleep 1000; : ${directory.path}`));
    await eventually("all commands run", () => ["a", "b", "c"].every((name) => existsSync(`${directory.path}/${name}`)));
    socket.destroy();
    await eventually("no command is left", () => processesNamed(directory.path).length === 0 && daemon.children().length === 0);
    // A call that was forgotten would hold the daemon for its grace.
    const started = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("is kept after an upload that failed, and serves what follows", async () => {
    await using daemon = await startDaemon();
    const socket = (await openSocket(daemon)).setEncoding("latin1");
    const length = 4 * 1024 * 1024;
    const head = [
      `POST ${WRITE_FILE} HTTP/1.1`,
      "host: x",
      `authorization: Bearer ${TOKEN}`,
      "content-type: application/connect+proto",
    ];
    socket.write(`${[...head, `content-length: ${length}`].join("\r\n")}\r\n\r\n`);
    // An envelope that announces more than any message may have.
    socket.write(Buffer.concat([Buffer.from("00ffffffff", "hex"), Buffer.alloc(length - 5)]));
    let received = "";
    socket.on("data", (text: string) => {
      received += text;
    });
    await eventually("the upload is refused", () => received.includes("resource_exhausted"));
    socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await eventually("the next request is served", () => received.includes('{"status":"ok"}'));
    socket.destroy();
  });

  it("that resets while it is answered does not end the daemon", async () => {
    await using daemon = await startDaemon({ args: ["--metrics-public"] });
    await leavesNothing(daemon, async () => {
      for (let round = 0; round < 200; round++) {
        const socket = await openSocket(daemon);
        socket.write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(round % 4));
        if (round % 2 === 0) await ask(daemon, "/healthz");
        socket.resetAndDestroy();
      }
    });
  });
});

describe("the daemon", () => {
  it("lives on when no descriptors are left, and serves again when some are", async () => {
    await using daemon = await startDaemon({ wrapper: ["prlimit", "--nofile=64:64"] });
    const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(daemon)));
    for (const socket of sockets) socket.destroy();
    await eventually("it answers", async () => (await ask(daemon, "/healthz").catch(() => undefined))?.status === 200);
  });

  it("bounds what callers without a token can keep open", async () => {
    await using daemon = await startDaemon();
    using raw = await RawHttp2.open(daemon.port);
    const headers = encodeHeaders(postHeaders("/grpc.health.v1.Health/Watch", "application/grpc"));
    const streams = Array.from({ length: 200 }, (_, at) => 2 * at + 1);
    const request = Buffer.alloc(5);
    raw.send(
      ...streams.flatMap((id) => [
        frame(FRAME.headers, FLAG.endHeaders, id, headers),
        frame(FRAME.data, FLAG.endStream, id, request),
      ]),
    );
    await eventually(
      "the others are refused",
      () => daemon.logs.filter(({ code }) => code === "resource_exhausted").length === 200 - 64,
    );
    await expect(ask(daemon, "/healthz")).resolves.toMatchObject({ status: 200 });
  });

  it("takes no new call on an old connection while it stops", async () => {
    await using daemon = await startDaemon();
    const socket = (await openSocket(daemon)).setEncoding("latin1");
    let received = "";
    socket.on("data", (text: string) => {
      received += text;
    });
    socket.write(execute("echo begun; sleep 1"));
    await daemon.waitForLog(({ msg }) => msg === "server listening");
    await eventually("the command runs", () => daemon.children().length > 0);
    daemon.child.kill("SIGTERM");
    await daemon.waitForLog(({ msg }) => msg === "shutting down");
    socket.write(execute("echo late"));
    expect(await daemon.exited).toBe(0);
    expect(received).toContain("begun");
    expect(received).toContain('"code":"unavailable","message":"the daemon is shutting down"');
    expect(received).not.toContain("late");
  });
});
