import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Process_State } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { errorOf, followToEnd, selectId, selectTag, startAndLeave } from "./support/processes.js";

describe("an id", () => {
  const request = { command: "echo $$", env: { A: "1", B: "2" }, id: "job" };

  it.each([
    ["command", { command: "echo other" }],
    ["command", { command: "", argv: ["echo"] }],
    ["cwd", { cwd: "/tmp" }],
    ["user", { user: "root" }],
    ["env", { env: { A: "1", B: "3" } }],
    ["pty", { pty: { cols: 80, rows: 24 } }],
    ["stdin", { stdin: true }],
    ["login", { login: true }],
    ["timeout", { timeout: 5 }],
    ["limits", { limits: { cpuSeconds: 5n } }],
  ])("is refused to a process of another %s", async (field, change) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await followToEnd(clients.process.start(request));
    const error = await errorOf(followToEnd(clients.process.start({ ...request, ...change })));
    expect([error.code, error.rawMessage]).toEqual([Code.AlreadyExists, `id job belongs to another process: ${field} differs`]);
  });

  it("is the same process for the same request, whatever the order of its map, running and ended", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const first = await followToEnd(clients.process.start(request));
    const again = await followToEnd(
      clients.process.start({ ...request, env: { B: "2", A: "1" }, tag: "other", backpressure: true }),
    );
    expect(again.text).toBe(first.text);
    expect((await clients.process.listProcesses({})).processes).toHaveLength(1);
    await clients.process.deleteProcess(selectId("job"));
    expect((await followToEnd(clients.process.start(request))).text).not.toBe(first.text);
  });

  it("starts one process when it is used by many at the same time", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const once = { id: randomUUID(), command: `echo started >> ${directory.path}/log; sleep 0.2; echo $$` };
    const all = await Promise.all(Array.from({ length: 20 }, () => followToEnd(clients.process.start(once))));
    expect(new Set(all.map(({ text }) => text)).size).toBe(1);
    expect(readFileSync(`${directory.path}/log`, "utf8")).toBe("started\n");
  });

  it("belongs to one of Start and Execute", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await startAndLeave(clients, { id: "started", command: "exec sleep 1000" });
    expect((await errorOf(clients.process.execute({ id: "started", command: "true" }))).code).toBe(Code.AlreadyExists);
    const executing = clients.process.execute({ id: "executed", command: "exec sleep 1000" });
    const ended = executing.catch(() => undefined);
    await eventually("it runs", async () => {
      const error = await errorOf(followToEnd(clients.process.start({ id: "executed", command: "true" }))).catch(() => undefined);
      return error?.code === Code.AlreadyExists;
    });
    await clients.process.stopProcess({ ...selectId("executed"), grace: {} });
    await ended;
    // Its result is kept, and is found under its id.
    const kept = await errorOf(followToEnd(clients.process.start({ id: "executed", command: "true" })));
    expect([kept.code, kept.rawMessage]).toEqual([Code.AlreadyExists, "id executed belongs to a command that was executed"]);
  });
});

describe("what is shown of a process", () => {
  it("is where and as whom it runs, not what the request called it", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await using clients = connectTo(daemon.url);
    const request = { id: "shown", command: "pwd; id -un" };
    const { text } = await followToEnd(clients.process.start(request));
    const { process } = await clients.process.getProcess(selectId("shown"));
    expect(`${process?.cwd}\n${process?.user}\n`).toBe(text);
    mkdirSync(`${directory.path}/below`);
    await followToEnd(clients.process.start({ id: "below", command: "true", cwd: "below", user: "0" }));
    expect((await clients.process.getProcess(selectId("below"))).process).toMatchObject({
      cwd: `${directory.path}/below`,
      user: "root",
    });
    await followToEnd(clients.process.start(request));
  });

  it("has no control characters in its names", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    for (const [field, names] of Object.entries({
      tag: { tag: "a\0" },
      label: { label: "a\nb" },
      session_id: { sessionId: "\x1b[0m" },
    })) {
      const error = await errorOf(followToEnd(clients.process.start({ command: "true", ...names })));
      expect([error.code, error.rawMessage]).toEqual([Code.InvalidArgument, `invalid ${field}: it holds a control character`]);
    }
    const id = await startAndLeave(clients, { command: "exec sleep 1000" });
    expect((await errorOf(clients.process.updateProcess({ ...selectId(id), label: "\x7f" }))).code).toBe(Code.InvalidArgument);
  });
});

describe("a tag", () => {
  it("is of one live process, and can be taken from an ended one, which has it back when the other is forgotten", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const idOf = async (tag: string) => (await clients.process.getProcess(selectTag(tag))).process?.id;
    await followToEnd(clients.process.start({ id: "first", command: "true", tag: "t" }));
    await followToEnd(clients.process.start({ id: "second", command: "true", tag: "t" }));
    expect(await idOf("t")).toBe("second");
    await startAndLeave(clients, { id: "third", command: "exec sleep 1000", tag: "t" });
    expect(await idOf("t")).toBe("third");
    const error = await errorOf(followToEnd(clients.process.start({ command: "true", tag: "t" })));
    expect([error.code, error.rawMessage]).toEqual([Code.AlreadyExists, "tag t is in use by process third"]);
    await clients.process.updateProcess({ ...selectId("third"), tag: "moved" });
    expect([await idOf("t"), await idOf("moved")]).toEqual(["second", "third"]);
    await startAndLeave(clients, { id: "fourth", command: "exec sleep 1000", tag: "t" });
    expect((await errorOf(clients.process.updateProcess({ ...selectId("third"), tag: "t" }))).code).toBe(Code.AlreadyExists);
    await clients.process.deleteProcess({ ...selectId("fourth"), stop: true });
    await clients.process.deleteProcess(selectId("second"));
    expect(await idOf("t")).toBe("first");
    await clients.process.updateProcess({ ...selectId("first"), tag: "" });
    expect((await errorOf(clients.process.getProcess(selectTag("t")))).code).toBe(Code.NotFound);
    expect((await clients.process.listProcesses({ state: Process_State.RUNNING })).processes.map(({ id }) => id)).toEqual([
      "third",
    ]);
  });
});
