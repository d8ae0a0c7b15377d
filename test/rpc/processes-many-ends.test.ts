import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { ProcessService } from "../../src/gen/sandboxd/process/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { ask } from "./support/http1.js";
import { startAndLeave } from "./support/processes.js";

const PROCESSES = 300;
/** The grace for commands, and what a shutdown waits for a KILL to be obeyed. */
const MAX_STOP_MS = 5_000;

it("many processes that are ended at once keep nobody waiting", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  // Of this service a process ends with its stream.
  const { start } = createClient(ProcessService, clients.transport);
  const streams = Array.from({ length: PROCESSES }, () => start({ config: { command: ["cat"] } })[Symbol.asyncIterator]());
  await Promise.all(streams.map((stream) => stream.next()));
  expect(daemon.children()).toHaveLength(PROCESSES);
  await clients[Symbol.asyncDispose]();
  await expect(ask(daemon, "/healthz")).resolves.toMatchObject({ status: 200 });
  await eventually("all have ended", () => daemon.children().length === 0);
});

it("a daemon with many processes ends them in its time", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  for (let started = 0; started < PROCESSES; started++) await startAndLeave(clients, { command: "exec sleep 1000" });
  const stoppedAt = performance.now();
  expect(await daemon.stop()).toBe(0);
  expect(performance.now() - stoppedAt).toBeLessThan(MAX_STOP_MS);
});
