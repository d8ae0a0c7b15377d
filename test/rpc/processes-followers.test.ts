import { writeFileSync } from "node:fs";
import { type CallOptions, Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { ProcessEvent } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { errorOf, followToEnd, selectId, startAndLeave } from "./support/processes.js";

const KEPT = 1024 * 1024;

/** A follower that takes one event and no more until it is told to go on; more than its window waits for it then. */
function stalled(follow: (options: CallOptions) => AsyncIterable<{ event?: ProcessEvent | undefined }>) {
  const abort = new AbortController();
  const iterator = follow({ signal: abort.signal })[Symbol.asyncIterator]();
  return {
    first: iterator.next(),
    goOn: () => followToEnd({ [Symbol.asyncIterator]: () => iterator }),
    leave: () => abort.abort(),
  };
}

describe("followers", () => {
  it("each go at their own pace, and a slow one delays neither the process nor the others", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await using others = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "read go; head -c 20000000 /dev/zero | tr '\\0' x", stdin: true });
    const slow = stalled((options) => others.process.attach(selectId(id), options));
    await slow.first;
    const fast = Array.from({ length: 3 }, () => followToEnd(clients.process.attach(selectId(id))));
    await clients.process.sendInput({ ...selectId(id), data: Buffer.from("\n") });
    for (const { text, trimmed } of await Promise.all(fast)) {
      const missing = trimmed.reduce((sum, { from, to }) => sum + Number(to - from), 0);
      expect(text.length + missing).toBe(20_000_000);
    }
    const { text, trimmed } = await slow.goOn();
    expect(trimmed.length).toBeGreaterThan(0);
    expect(text.length + trimmed.reduce((sum, { from, to }) => sum + Number(to - from), 0)).toBe(20_000_000);
    expect(text.length).toBeGreaterThanOrEqual(KEPT);
  });

  it.each([
    ["a pipe", {}],
    ["a terminal", { pty: { cols: 80, rows: 24 } }],
  ])("that must not lose anything get what %s still held at the end, although they were paused then", async (_kind, io) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await using others = connectTo(daemon.url);
    const lines = 2_000_000;
    const id = "paused";
    const held = stalled((options) => others.process.start({ id, command: `seq ${lines}`, backpressure: true, ...io }, options));
    await held.first;
    const written = async () => {
      const { process } = await clients.process.getProcess(selectId(id));
      return Number((process?.written?.stdout ?? 0n) + (process?.written?.pty ?? 0n));
    };
    let last = -1;
    await eventually("it waits", async () => {
      const before = last;
      last = await written();
      return last > KEPT / 4 && last === before;
    });
    const { text, trimmed, ended } = await held.goOn();
    expect(trimmed).toEqual([]);
    expect(ended.outcome?.exitCode).toBe(0);
    const all = text.replaceAll("\r", "").split("\n");
    expect([all.length, all.at(-2)]).toEqual([lines + 1, String(lines)]);
  });

  it("that must not lose anything and never go on do not keep the end of a process from being known", async () => {
    await using daemon = await startDaemon({ args: ["--kill-grace", "200ms"] });
    await using clients = connectTo(daemon.url);
    await using others = connectTo(daemon.url);
    const held = stalled((options) => others.process.start({ id: "held", command: "yes", backpressure: true }, options));
    await held.first;
    expect(await clients.process.stopProcess(selectId("held"))).toMatchObject({ survivingProcesses: 0 });
    const { trimmed } = await held.goOn();
    expect(trimmed).toEqual([]);
  });

  it("that must not lose anything release the process when they leave", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const others = connectTo(daemon.url);
    const held = stalled((options) =>
      others.process.start({ id: "held", command: "head -c 50000000 /dev/zero", backpressure: true }, options),
    );
    await held.first;
    await others[Symbol.asyncDispose]();
    await held.goOn().catch(() => undefined);
    const { ended } = await followToEnd(clients.process.attach(selectId("held")));
    expect(ended.outcome?.exitCode).toBe(0);
  });

  it("are limited for each process", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "exec sleep 1000" });
    await daemon.waitForLog(({ procedure }) => procedure === "/picod.v1.ProcessService/Start");
    const followers = Array.from({ length: 256 }, () => stalled((options) => clients.process.attach(selectId(id), options)));
    await Promise.all(followers.map(({ first }) => first));
    const error = await errorOf(followToEnd(clients.process.attach(selectId(id))));
    expect([error.code, error.rawMessage]).toEqual([Code.ResourceExhausted, `cannot follow ${id}: it has 256 followers`]);
    for (const { leave } of followers) leave();
    await eventually("there is room", async () => {
      const another = stalled((options) => clients.process.attach(selectId(id), options));
      return another.first.then(
        () => true,
        () => false,
      );
    });
  });
});

describe("limits", () => {
  it("hold for live processes", async () => {
    await using daemon = await startDaemon({ args: ["--max-processes", "2"] });
    await using clients = connectTo(daemon.url);
    const first = await startAndLeave(clients, { command: "exec sleep 1000" });
    await startAndLeave(clients, { command: "exec sleep 1000" });
    const error = await errorOf(followToEnd(clients.process.start({ command: "true" })));
    expect([error.code, error.rawMessage]).toEqual([
      Code.ResourceExhausted,
      "cannot start a process: 2 are running, the limit is 2",
    ]);
    await clients.process.stopProcess(selectId(first));
    await followToEnd(clients.process.start({ command: "true" }));
  });

  it("hold for input that a process does not read, which a stream waits for", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const command = `until [ -e ${directory.path}/go ]; do sleep 0.02; done; wc -c`;
    const id = await startAndLeave(clients, { command, stdin: true });
    const send = (bytes: number) => clients.process.sendInput({ ...selectId(id), data: Buffer.alloc(bytes) });
    await send(1_000_000);
    await send(40_000);
    const error = await errorOf(send(100_000));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.rawMessage).toMatch(/^cannot send input to proc_\S+: \d+ bytes wait for it to read them, the limit is 1048576$/);
    async function* pieces() {
      yield { request: { case: "target" as const, value: { ...selectId(id), close: true } } };
      for (let index = 0; index < 10; index++) yield { request: { case: "data" as const, value: Buffer.from("small") } };
    }
    const streaming = clients.process.streamInput(pieces());
    writeFileSync(`${directory.path}/go`, "");
    expect(await streaming).toEqual(expect.objectContaining({ inputBytes: 1_040_050n }));
    expect((await followToEnd(clients.process.attach(selectId(id)))).text).toBe("1040050\n");
  });
});
