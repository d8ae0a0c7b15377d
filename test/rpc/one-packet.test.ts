import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SwitchedProxy } from "../client/switched-proxy.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { all } from "./support/file-calls.js";

const CALLS = 10;

const CASES: [what: string, call: (clients: Clients, path: string) => Promise<unknown>][] = [
  ["one message", ({ filesystem }, path) => filesystem.stat({ path })],
  ["a stream of messages that are there at once", ({ filesystem }, path) => all(filesystem.readFile({ path }))],
  ["a stream of none", ({ filesystem }, path) => all(filesystem.listDirectory({ path: `${path}-empty` }))],
];

describe("an answer over gRPC", () => {
  it.each(CASES)("of %s leaves in one packet, with its headers and its status", async (_, call) => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "x".repeat(1000));
    await using clients = connectTo(proxy.url);
    await clients.filesystem.makeDirectory({ path: `${path}-empty` });
    // The first answer is Node's way, from which the others learn.
    await call(clients, path);
    const before = proxy.packets;
    for (let calls = 0; calls < CALLS; calls++) await call(clients, path);
    expect(proxy.packets - before).toBe(CALLS);
  });
});
