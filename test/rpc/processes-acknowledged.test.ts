import { Code, type ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { ProcessEvent } from "../../src/gen/picod/v1/process_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { errorOf, followToEnd, selectId, startAndLeave } from "./support/processes.js";

const KEPT = 1024 * 1024;
const BYTES = 20_000_000;
const PRINT = `head -c ${BYTES} /dev/zero | tr '\\0' x`;
const acknowledging = (followerId: string, seconds = 600n) => ({ backpressure: true, followerId, hold: { seconds } });

/** Takes output until there are so many bytes, acknowledges some of them, and breaks off. */
async function takeSome(clients: Clients, id: string, followerId: string, enough: number, acknowledged: bigint): Promise<void> {
  const leave = new AbortController();
  let bytes = 0;
  const request = { ...selectId(id), from: { stdout: 0n }, ...acknowledging(followerId) };
  for await (const { event } of clients.process.attach(request, { signal: leave.signal })) {
    if (event?.event.case === "trimmed") throw new Error("it was trimmed");
    if (event?.event.case === "output") bytes += event.event.value.output.value?.length ?? 0;
    if (bytes >= enough) break;
  }
  await clients.process.acknowledgeOutput({ ...selectId(id), followerId, received: { stdout: acknowledged } });
  leave.abort();
}

const writtenBy = async (clients: Clients, id: string) => {
  const { process } = await clients.process.getProcess(selectId(id));
  return { written: Number(process?.written?.stdout ?? 0n), keptFrom: Number(process?.keptFrom?.stdout ?? 0n) };
};

/** Follows to the end and acknowledges everything, at the latest when the process waits for it. */
async function* acknowledgeAll(
  clients: Clients,
  id: string,
  followerId: string,
  events: AsyncIterable<{ event?: ProcessEvent | undefined }>,
) {
  let end = 0n;
  for await (const message of events) {
    const { event } = message.event ?? {};
    if (event?.case === "output") end = event.value.offset + BigInt(event.value.output.value?.length ?? 0);
    if (event?.case === "keepalive") {
      const acknowledged = clients.process.acknowledgeOutput({ ...selectId(id), followerId, received: { stdout: end } });
      // What the pipe still holds does not keep a program from ending, and one that has ended waits for nobody.
      await acknowledged.catch((error: ConnectError) => {
        if (error.code !== Code.NotFound) throw error;
      });
    }
    yield message;
  }
}

describe("a follower that acknowledges", () => {
  it("holds the process back while it is away, and goes on where it was", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: `read go; ${PRINT}`, stdin: true });
    const leave = new AbortController();
    const first = clients.process.attach({ ...selectId(id), ...acknowledging("f") }, { signal: leave.signal });
    await first[Symbol.asyncIterator]().next();
    await clients.process.sendInput({ ...selectId(id), data: Buffer.from("\n") });
    leave.abort();
    await takeSome(clients, id, "f", 300_000, 200_000n);
    await daemon.waitForLog(({ procedure }) => procedure === "/picod.v1.ProcessService/Attach");
    let before = -1;
    await eventually("it waits", async () => {
      const { written } = await writtenBy(clients, id);
      const still = written === before && written > KEPT / 2;
      before = written;
      return still;
    });
    const { written, keptFrom } = await writtenBy(clients, id);
    expect(written).toBeLessThan(2 * KEPT);
    expect(keptFrom).toBeLessThanOrEqual(200_000);
    const attached = clients.process.attach({ ...selectId(id), from: { stdout: 200_000n }, ...acknowledging("f") });
    const { text, trimmed } = await followToEnd(acknowledgeAll(clients, id, "f", attached));
    expect([text.length, trimmed]).toEqual([BYTES - 200_000, []]);
  });

  it("is asked for its word whenever the process waits for nothing else", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const started = clients.process.start({ id: "held", command: PRINT, ...acknowledging("f") });
    const { text, trimmed, ended } = await followToEnd(acknowledgeAll(clients, "held", "f", started));
    expect([text.length, trimmed, ended.outcome?.exitCode]).toEqual([BYTES, [], 0]);
  });

  it("that never comes back lets the process go when its time is over, or when it says so", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    for (const [id, seconds] of [
      ["expires", 0.2],
      ["released", 600],
    ] as const) {
      const leave = new AbortController();
      const hold = { seconds: BigInt(Math.floor(seconds)), nanos: (seconds % 1) * 1e9 };
      const request = { id, command: PRINT, backpressure: true, followerId: "f", hold };
      await clients.process.start(request, { signal: leave.signal })[Symbol.asyncIterator]().next();
      leave.abort();
      if (id === "released") {
        await eventually("it waits", async () => (await writtenBy(clients, id)).written > KEPT / 2);
        await clients.process.acknowledgeOutput({ ...selectId(id), followerId: "f", release: true });
      }
      const { ended } = await followToEnd(clients.process.attach(selectId(id)));
      expect(ended.outcome?.exitCode).toBe(0);
      const error = await errorOf(clients.process.acknowledgeOutput({ ...selectId(id), followerId: "f" }));
      expect([error.code, error.rawMessage]).toEqual([
        Code.NotFound,
        `cannot acknowledge output of ${id}: it does not wait for follower f`,
      ]);
    }
  });

  it("is refused what cannot be, before a process starts for it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    for (const [change, message] of [
      [{ followerId: "f" }, "invalid follower_id: it needs backpressure"],
      [{ followerId: "a b", backpressure: true }, "invalid follower_id: expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -"],
      [acknowledging("f", 601n), "invalid hold: it is 0 to 10 minutes"],
      [acknowledging("f", -1n), "invalid hold: it is 0 to 10 minutes"],
    ] as const) {
      const error = await errorOf(followToEnd(clients.process.start({ command: "true", ...change })));
      expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, message]);
    }
    expect((await clients.process.listProcesses({})).processes).toEqual([]);
    const id = await startAndLeave(clients, { command: "exec sleep 1000" });
    const attach = async (followerId: string) => {
      const leave = new AbortController();
      const request = { ...selectId(id), ...acknowledging(followerId) };
      await clients.process.attach(request, { signal: leave.signal })[Symbol.asyncIterator]().next();
      return leave;
    };
    const leaves = await Promise.all(Array.from({ length: 16 }, (_, index) => attach(`f${index}`)));
    expect((await errorOf(attach("one-more"))).code).toBe(Code.ResourceExhausted);
    const beyond = clients.process.acknowledgeOutput({ ...selectId(id), followerId: "f1", received: { stdout: 1n } });
    expect((await errorOf(beyond)).code).toBe(Code.OutOfRange);
    for (const leave of leaves) leave.abort();
  });
});
