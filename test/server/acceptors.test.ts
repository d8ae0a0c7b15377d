import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import pino from "pino";
import { describe, expect, it } from "vitest";
import { HttpRoutes } from "../../src/api/http-route.js";
import type { RequestHandler } from "../../src/server/handle-request.js";
import { MAX_CONNECTIONS } from "../../src/server/limits.js";
import { createListener } from "../../src/server/listener.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { ask } from "../rpc/support/http1.js";

const CONNECTIONS = 400;
const REQUEST = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/** A server in this event loop, and connections that wait for it in the kernel's queue with a request. */
async function crowd(handle: (response: ServerResponse) => void) {
  const onRequest = async (_request: IncomingMessage, response: ServerResponse) => handle(response);
  const logger = pino({ level: "silent" });
  const listener = createListener(onRequest as unknown as RequestHandler, () => false, new HttpRoutes([]), undefined, logger);
  const port = await listener.listen("127.0.0.1", 0);
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  for (const socket of sockets) socket.write(REQUEST);
  return { listener, sockets };
}

describe("connections that come at once", () => {
  it("are accepted several at a time, and as soon as others are served", async () => {
    let answered = 0;
    let turns = 0;
    const { listener, sockets } = await crowd((response) => {
      answered++;
      response.end();
    });
    while (answered < CONNECTIONS) {
      turns++;
      await nextTurn();
    }
    // One a turn would take as many turns as there are connections.
    expect(turns).toBeLessThan(CONNECTIONS / 4);
    const closed = Promise.all(sockets.map((socket: Socket) => once(socket, "close")));
    listener.stopAccepting();
    for (const socket of sockets) socket.resume();
    await closed;
  });

  it("are reset beyond the limit, by whichever of the descriptors they are accepted", async () => {
    const logger = pino({ level: "silent" });
    const listener = createListener(
      async () => undefined,
      () => false,
      new HttpRoutes([]),
      undefined,
      logger,
    );
    const port = await listener.listen("127.0.0.1", 0);
    let reset = 0;
    const sockets: Socket[] = [];
    // In portions that the queue of the kernel takes.
    while (sockets.length < MAX_CONNECTIONS + 30) {
      const portion = Array.from({ length: Math.min(200, MAX_CONNECTIONS + 30 - sockets.length) }, () => {
        return connect(port, "127.0.0.1").on("error", ({ code }: NodeJS.ErrnoException) => {
          if (code === "ECONNRESET") reset++;
        });
      });
      await Promise.all(
        portion.map((socket) => new Promise((resolve) => socket.once("connect", resolve).once("error", resolve))),
      );
      sockets.push(...portion);
    }
    await eventually("the others are reset", () => reset >= 30);
    expect(reset).toBe(30);
    const closed = Promise.all(sockets.filter(({ destroyed }) => !destroyed).map((socket) => once(socket, "close")));
    for (const socket of sockets) socket.destroy();
    await closed;
    listener.stopAccepting();
  });

  it("are refused by all when the listener is closed, and served by nobody", async () => {
    await using daemon = await startDaemon();
    await ask(daemon, "/healthz");
    const before = daemon.descriptors();
    await Promise.all(Array.from({ length: 50 }, () => ask(daemon, "/healthz")));
    await eventually("the connections are closed", () => daemon.descriptors() <= before + 1);
    expect(await daemon.stop()).toBe(0);
    await expect(ask(daemon, "/healthz")).rejects.toThrow("ECONNREFUSED");
  });
});
