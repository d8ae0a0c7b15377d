import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import type { ProcessEvent } from "../../src/gen/picod/v1/process_pb.js";
import { Outcome_Reason, Process_State } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { errorOf, followToEnd, selectId, startAndLeave } from "./support/processes.js";

interface Followed {
  id: string;
  text: string;
  kinds: string[];
  ended: Extract<ProcessEvent["event"], { case: "ended" }>["value"] | undefined;
}

/** Collects the events of a Start or Attach until it ends, or until `enough`. */
async function collect(
  stream: AsyncIterable<{ event?: ProcessEvent | undefined }>,
  enough: (followed: Followed) => boolean = () => false,
): Promise<Followed> {
  const followed: Followed = { id: "", text: "", kinds: [], ended: undefined };
  const decoder = new TextDecoder();
  for await (const { event } of stream) {
    const { case: kind, value } = event?.event ?? { case: undefined };
    followed.kinds.push(String(kind));
    if (kind === "started") followed.id = value.process?.id ?? "";
    if (kind === "output") followed.text += decoder.decode(value.output.value, { stream: true });
    if (kind === "ended") followed.ended = value;
    if (enough(followed)) break;
  }
  return followed;
}

async function fails(promise: Promise<unknown>): Promise<ConnectError> {
  return promise.then(
    () => {
      throw new Error("expected an error");
    },
    (error: unknown) => ConnectError.from(error),
  );
}

describe("Start and Attach", () => {
  it("follow a process from its start to its end, and again after it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const first = await collect(clients.process.start({ command: "echo one; echo two >&2; exit 3" }));
    expect(first.kinds[0]).toBe("started");
    expect(first.kinds.at(-1)).toBe("ended");
    expect(first.text.split("\n").sort()).toEqual(["", "one", "two"]);
    expect(first.ended?.outcome).toMatchObject({ reason: Outcome_Reason.EXITED, exitCode: 3 });
    const again = await collect(clients.process.attach(selectId(first.id)));
    expect(again.text.length).toBe(first.text.length);
    expect(again.ended?.outcome).toMatchObject({ exitCode: 3 });
    const later = await collect(clients.process.attach({ ...selectId(first.id), from: { stdout: 2n, stderr: 4n } }));
    expect(later.text).toBe("e\n");
    expect((await fails(collect(clients.process.attach({ ...selectId(first.id), from: { stdout: 99n } })))).code).toBe(
      Code.OutOfRange,
    );
    expect((await fails(collect(clients.process.attach(selectId("proc_none"))))).code).toBe(Code.NotFound);
  });

  it("outlive the connection that started them", async () => {
    await using daemon = await startDaemon();
    await using other = connectTo(daemon.url);
    const clients = connectTo(daemon.url);
    const started = await collect(
      clients.process.start({ command: "read line; echo got $line", stdin: true, tag: "job" }),
      ({ id }) => id !== "",
    );
    await clients[Symbol.asyncDispose]();
    const process = { selector: { case: "tag" as const, value: "job" } };
    await other.process.sendInput({ process, data: Buffer.from("hello\n"), offset: 0n });
    const followed = await collect(other.process.attach({ process }));
    expect([followed.id, followed.text]).toEqual([started.id, "got hello\n"]);
  });

  it("find the same process by its id, and refuse another specification", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const request = { command: "echo $$", id: "job-1" };
    const [first, second] = await Promise.all([collect(clients.process.start(request)), collect(clients.process.start(request))]);
    expect(first.text).toBe(second.text);
    const error = await fails(collect(clients.process.start({ ...request, command: "echo other" })));
    expect([error.code, error.rawMessage]).toEqual([Code.AlreadyExists, "id job-1 belongs to another process: command differs"]);
  });

  it("tell a follower what it has missed, exactly", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { id } = await collect(clients.process.start({ command: "head -c 5000000 /dev/zero" }), ({ kinds }) =>
      kinds.includes("ended"),
    );
    let trimmedTo = 0n;
    let received = 0n;
    for await (const { event } of clients.process.attach(selectId(id))) {
      if (event?.event.case === "trimmed") {
        expect(event.event.value.from).toBe(received);
        trimmedTo = event.event.value.to;
        received = trimmedTo;
      }
      if (event?.event.case === "output") {
        expect(event.event.value.offset).toBe(received);
        received += BigInt(event.event.value.output.value?.length ?? 0);
      }
    }
    expect(received).toBe(5_000_000n);
    expect(trimmedTo).toBe(5_000_000n - 1024n * 1024n);
  });

  it("make the process wait for a follower that must not lose anything", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    let received = 0;
    const kinds = new Set<string>();
    for await (const { event } of clients.process.start({
      command: "head -c 50000000 /dev/zero; echo end >&2",
      backpressure: true,
    })) {
      kinds.add(String(event?.event.case));
      if (event?.event.case === "output") received += event.event.value.output.value?.length ?? 0;
    }
    expect(received).toBe(50_000_004);
    expect(kinds).toEqual(new Set(["started", "output", "ended"]));
  });
});

describe("a terminal", () => {
  it("is the controlling terminal of its program, of the asked size, and is resized", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const command =
      "tty; stty size; ps -o tpgid= -p $$ | tr -d ' ' | grep -qx $$ && echo controlling; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done";
    const stream = clients.process.start({ command, pty: { cols: 132, rows: 40 } });
    const followed: Followed = { id: "", text: "", kinds: [], ended: undefined };
    for await (const { event } of stream) {
      if (event?.event.case === "started") followed.id = event.event.value.process?.id ?? "";
      if (event?.event.case !== "output") continue;
      const before = followed.text;
      followed.text += Buffer.from(event.event.value.output.value ?? []).toString();
      if (followed.text.includes("ready") && !before.includes("ready"))
        await clients.process.resizePty({ ...selectId(followed.id), size: { cols: 80, rows: 25 } });
    }
    expect(followed.text).toMatch(/^\/dev\/pts\/\d+\r\n40 132\r\ncontrolling\r\nready\r\n25 80\r\n$/);
  });

  it("has job control in a shell that is typed at, and ends at end of file", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const stream = clients.process.start({
      argv: ["bash", "--norc", "-i"],
      pty: { cols: 80, rows: 24 },
      env: { PS1: "$ ", TERM: "dumb" },
    });
    const type = (id: string, text: string) => clients.process.sendInput({ ...selectId(id), data: Buffer.from(text) });
    let id = "";
    let text = "";
    // What the job prints tells that it has the terminal; the echo of what is typed does not.
    // Not dash: it waits in vfork(2) for its `sleep`, and for ever where that is stopped before it begins.
    const job = `bash -c "trap 'echo w''oke' CONT; echo u''p; while :; do sleep 0.05; done"`;
    // What is typed before the prompt is there may be taken by the job before it.
    const steps: [RegExp, string][] = [
      [/\$ /, `${job}\r`],
      [/\nup\r\n/, "\x1a"],
      [/Stopped[\s\S]*\n\$ /, "fg\r"],
      [/\nwoke\r\n/, "\x03"],
      [/\n\$ /, "echo code $?\r"],
      [/code 130\r\n\$ /, "exit\r"],
    ];
    for await (const { event } of stream) {
      if (event?.event.case === "started") id = event.event.value.process?.id ?? "";
      if (event?.event.case !== "output") continue;
      text += Buffer.from(event.event.value.output.value ?? []).toString();
      for (let found = steps[0]?.[0].exec(text); found != null; found = steps[0]?.[0].exec(text)) {
        text = text.slice(found.index + found[0].length);
        await type(id, steps.shift()?.[1] ?? "");
      }
    }
    expect(steps).toEqual([]);
    expect(text).not.toContain("no job control");
  });

  it("loses nothing that was printed before the end, and leaks no descriptor", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    await collect(clients.process.start({ command: "true", pty: { cols: 80, rows: 24 } }));
    const before = daemon.descriptors();
    const all = await Promise.all(
      Array.from({ length: 50 }, () => collect(clients.process.start({ command: "seq 1000", pty: { cols: 80, rows: 24 } }))),
    );
    for (const { text, ended } of all) {
      expect(text.split("\r\n").slice(0, 1000)).toEqual(Array.from({ length: 1000 }, (_, index) => String(index + 1)));
      expect(ended?.outcome?.exitCode).toBe(0);
    }
    await eventually("descriptors are closed", () => daemon.descriptors() <= before);
  });
});

describe("the other calls", () => {
  it("describe, tag, signal, stop and forget processes", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const abort = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { event } of clients.process.watchProcesses({}, { signal: abort.signal })) seen.push(String(event.case));
    })().catch(() => undefined);
    await eventually("watching", () => seen.length > 0);
    const { id } = await collect(clients.process.start({ command: "sleep 1000 & sleep 1001", tag: "t" }), ({ id }) => id !== "");
    await eventually("both run", async () => (await clients.process.getProcess(selectId(id))).process?.liveProcesses === 3);
    expect((await clients.process.listProcesses({ tag: "t" })).processes[0]).toMatchObject({ id, state: Process_State.RUNNING });
    expect((await fails(collect(clients.process.start({ command: "true", tag: "t" })))).code).toBe(Code.AlreadyExists);
    await clients.process.updateProcess({ ...selectId(id), tag: "u", label: "sleeper" });
    expect((await fails(clients.process.deleteProcess(selectId(id)))).code).toBe(Code.FailedPrecondition);
    await clients.process.sendSignal({ ...selectId(id), signal: "USR1" });
    await eventually(
      "it has ended",
      async () => (await clients.process.getProcess(selectId(id))).process?.state === Process_State.ENDED,
    );
    const { process } = await clients.process.getProcess(selectId(id));
    expect(process).toMatchObject({
      tag: "u",
      label: "sleeper",
      outcome: { reason: Outcome_Reason.SIGNALED, signal: "SIGUSR1", exitCode: 138 },
    });
    await clients.process.deleteProcess(selectId(id));
    expect((await fails(clients.process.getProcess(selectId(id)))).code).toBe(Code.NotFound);
    await eventually("all was seen", () => seen.includes("deletedId"));
    abort.abort();
    await watching;
    expect(seen.filter((kind) => kind !== "keepalive")).toEqual(["started", "updated", "ended", "deletedId"]);
  });

  it("stop background children that an ended process has left", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { id } = await collect(clients.process.start({ command: "setsid sleep 98765 > /dev/null 2>&1 & echo started" }));
    expect(processesNamed("98765")).toHaveLength(1);
    expect((await clients.process.getProcess(selectId(id))).process).toMatchObject({
      state: Process_State.ENDED,
      liveProcesses: 1,
    });
    expect(await clients.process.stopProcess(selectId(id))).toMatchObject({ forced: false, survivingProcesses: 0 });
    expect(processesNamed("98765")).toEqual([]);
  });

  it("takes input with a write id once, whoever else writes, and answers as the first time, also beyond the end", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "cat", stdin: true });
    const send = (data: string, writeId: string) =>
      clients.process.sendInput({ ...selectId(id), data: Buffer.from(data), writeId });
    expect(await send("abc", "w1")).toMatchObject({ inputBytes: 3n });
    expect(await send("d", "")).toMatchObject({ inputBytes: 4n });
    expect(await send("abc", "w1")).toMatchObject({ inputBytes: 3n });
    for (let index = 0; index < 1023; index++) await send("x", `other-${index}`);
    expect(await send("abc", "w1")).toMatchObject({ inputBytes: 3n });
    await send("y", "the-1025th");
    expect(await send("abc", "w1")).toMatchObject({ inputBytes: 1031n });
    expect((await errorOf(send("z", "w".repeat(129)))).code).toBe(Code.InvalidArgument);
    await clients.process.closeInput(selectId(id));
    const { text } = await followToEnd(clients.process.attach(selectId(id)));
    expect(text).toBe(`abcd${"x".repeat(1023)}yabc`);
    expect(await send("abc", "w1")).toMatchObject({ inputBytes: 1031n });
    expect((await errorOf(send("abc", "new"))).code).toBe(Code.FailedPrecondition);
  });

  it("do not type a repeated input twice, and close it", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { id } = await collect(clients.process.start({ command: "cat", stdin: true }), ({ id }) => id !== "");
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await clients.process.sendInput({ ...selectId(id), data: Buffer.from("abc"), offset: 0n })).toMatchObject({
        inputBytes: 3n,
      });
    }
    await clients.process.sendInput({ ...selectId(id), data: Buffer.from("cdef"), offset: 2n });
    expect((await fails(clients.process.sendInput({ ...selectId(id), data: Buffer.from("x"), offset: 9n }))).code).toBe(
      Code.OutOfRange,
    );
    await clients.process.closeInput(selectId(id));
    await clients.process.closeInput(selectId(id));
    expect((await fails(clients.process.sendInput({ ...selectId(id), data: Buffer.from("x") }))).code).toBe(
      Code.FailedPrecondition,
    );
    expect((await collect(clients.process.attach(selectId(id)))).text).toBe("abcdef");
  });

  it("stream a large input at the pace of the process", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { id } = await collect(clients.process.start({ command: "wc -c", stdin: true }), ({ id }) => id !== "");
    async function* input() {
      yield { request: { case: "target" as const, value: { ...selectId(id), close: true } } };
      for (let sent = 0; sent < 100; sent++) yield { request: { case: "data" as const, value: Buffer.alloc(300_000) } };
    }
    expect(await clients.process.streamInput(input())).toMatchObject({ inputBytes: 30_000_000n });
    expect((await collect(clients.process.attach(selectId(id)))).text).toBe("30000000\n");
  });
});
