import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { create, ticketOf, view } from "./support/http-api.js";
import { openSocket } from "./support/http1.js";

const PING_INTERVAL_MS = 30_000;

/** As long as the daemon's own times: they cannot be set. */
describe("a minute in which nothing is said", () => {
  it("costs a viewer that answers no ping its connection, one that does not, and a ticket its worth", {
    timeout: 90_000,
  }, async () => {
    await using daemon = await startDaemon();
    const id = await create(daemon, { command: "exec sleep 1000" });
    const ticket = await ticketOf(daemon);
    using answering = await view(daemon, id);
    const silent = await openSocket(daemon);
    const headers = `host: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nauthorization: Bearer ${TOKEN}\r\n`;
    const version = "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const openedAt = performance.now();
    silent.write(`GET /v1/processes/${id}/connect HTTP/1.1\r\n${headers}${version}\r\n`);
    let received = Buffer.alloc(0);
    silent.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    await once(silent, "close");
    expect(performance.now() - openedAt).toBeGreaterThan(2 * PING_INTERVAL_MS - 1_000);
    expect(received.toString("latin1")).toMatch(/^HTTP\/1.1 101 /);
    expect(received.subarray(-2)).toEqual(Buffer.from([0x89, 0]));
    expect(answering.socket.readyState).toBe(answering.socket.OPEN);
    await expect(view(daemon, id, { query: `?ticket=${ticket}`, headers: {} })).rejects.toThrow(/^401 .*unauthenticated/);
  });
});
