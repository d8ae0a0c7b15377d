import { connect } from "node:net";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Outcome_Reason } from "../../src/gen/picod/v1/process_pb.js";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { createMemoryCgroup } from "../helpers/memory-cgroup.js";
import { processesNamed } from "../helpers/processes.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { envelope } from "./support/messages.js";
import { errorOf, followToEnd, selectId, startAndLeave } from "./support/processes.js";

const PTY = { cols: 80, rows: 24 };

describe("a process ends", () => {
  it.each([
    ["EXITED", { command: "exit 7" }, { exitCode: 7, signal: "", message: "" }],
    ["SIGNALED", { command: "kill -SEGV $$" }, { exitCode: 139, signal: "SIGSEGV", message: "ended by SIGSEGV" }],
    [
      "TIMED_OUT",
      { command: "exec sleep 1000", timeout: 0.2 },
      { exitCode: 124, signal: "SIGTERM", message: "timed out after 0.2 s" },
    ],
    ["SPAWN_FAILED", { argv: ["no-such-program"] }, { exitCode: 127, message: "program not found: no-such-program" }],
    ["SPAWN_FAILED", { argv: ["/etc/passwd"] }, { exitCode: 126, message: "cannot run /etc/passwd: permission denied" }],
    ["SPAWN_FAILED", { argv: ["/etc/passwd"], pty: PTY }, { exitCode: 126 }],
  ] as const)("as %s: %j", async (reason, request, outcome) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const { ended } = await followToEnd(clients.process.start(request as object));
    expect(ended.outcome).toMatchObject({ reason: Outcome_Reason[reason], forced: false, survivingProcesses: 0, ...outcome });
  });

  it("as CANCELLED when it is stopped, by force when it ignores TERM", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const gentle = await startAndLeave(clients, { command: "exec sleep 1000" });
    expect(await clients.process.stopProcess(selectId(gentle))).toMatchObject({ forced: false, survivingProcesses: 0 });
    const stubborn = await startAndLeave(clients, { command: "trap '' TERM; echo up; while :; do sleep 0.1; done" });
    await eventually("it ignores TERM", async () => {
      return ((await clients.process.getProcess(selectId(stubborn))).process?.written?.stdout ?? 0n) > 0n;
    });
    const grace = { nanos: 100_000_000 };
    const stopped = await clients.process.stopProcess({ ...selectId(stubborn), grace });
    expect(stopped).toMatchObject({
      forced: true,
      survivingProcesses: 0,
      process: { outcome: { reason: Outcome_Reason.CANCELLED, signal: "SIGKILL", exitCode: 137, forced: true } },
    });
    expect(await clients.process.stopProcess(selectId(stubborn))).toMatchObject({ forced: false, survivingProcesses: 0 });
  });

  it("as SIGNALED by a KILL that was asked for", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "exec sleep 1000" });
    await clients.process.sendSignal({ ...selectId(id), signal: "KILL" });
    const { ended } = await followToEnd(clients.process.attach(selectId(id)));
    expect(ended.outcome).toMatchObject({ reason: Outcome_Reason.SIGNALED, signal: "SIGKILL", exitCode: 137 });
    expect((await errorOf(clients.process.sendSignal({ ...selectId(id), signal: "TERM" }))).code).toBe(Code.FailedPrecondition);
  });
});

describe("stopping", () => {
  it("reaches what has left group and session and ignores TERM", async () => {
    using directory = temporaryDirectory();
    const mark = `${directory.path}/stubborn`;
    await using daemon = await startDaemon({ args: ["--kill-grace", "200ms"] });
    await using clients = connectTo(daemon.url);
    const stubborn = `trap "" TERM; echo up; while :; do sleep 0.1; done; : ${mark}`;
    const id = await startAndLeave(clients, { command: `(setsid setsid sh -c '${stubborn}' &); exec sleep 1000` });
    await eventually("it ignores TERM", async () => {
      return ((await clients.process.getProcess(selectId(id))).process?.written?.stdout ?? 0n) > 0n;
    });
    expect(await clients.process.stopProcess(selectId(id))).toMatchObject({ forced: true, survivingProcesses: 0 });
    expect(processesNamed(mark)).toEqual([]);
  });

  it("counts what it may not end, and says so", async () => {
    // A root that may become others and not signal them.
    const wrapper = ["setpriv", "--inh-caps=-kill", "--bounding-set=-kill"];
    await using daemon = await startDaemon({ args: ["--kill-grace", "100ms"], wrapper });
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "echo up; exec sleep 1000", user: "nobody" });
    // A moment before execve(2) has ended it could still be signalled.
    await eventually("it is nobody's", async () => {
      return ((await clients.process.getProcess(selectId(id))).process?.written?.stdout ?? 0n) > 0n;
    });
    const { process: stopped, ...answer } = await clients.process.stopProcess(selectId(id));
    expect(answer).toMatchObject({ forced: true, survivingProcesses: 1 });
    expect(stopped?.outcome).toMatchObject({
      reason: Outcome_Reason.CANCELLED,
      survivingProcesses: 1,
      message: "ended on request; 1 of its processes could not be ended",
    });
    expect(stopped?.liveProcesses).toBe(1);
    process.kill(stopped?.pid ?? 0, "SIGKILL");
  });

  it("again with less patience shortens the grace", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { command: "trap '' TERM; echo up; while :; do sleep 0.1; done" });
    await eventually("it ignores TERM", async () => {
      return ((await clients.process.getProcess(selectId(id))).process?.written?.stdout ?? 0n) > 0n;
    });
    const patient = clients.process.stopProcess({ ...selectId(id), grace: { seconds: 3600n } });
    await eventually("it is being ended", async () => (await clients.process.getProcess(selectId(id))).process?.state === 2);
    expect(await clients.process.stopProcess({ ...selectId(id), grace: {} })).toMatchObject({ forced: true });
    expect(await patient).toMatchObject({ forced: true, survivingProcesses: 0 });
  });

  it("ends a running Execute that has an id", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const executing = clients.process.execute({ id: "exec-1", command: "echo before; exec sleep 1000" });
    const stopped = async () => clients.process.stopProcess(selectId("exec-1")).catch(() => undefined);
    await eventually("it is there", async () => (await stopped()) !== undefined);
    expect(await executing).toMatchObject({ outcome: { reason: Outcome_Reason.CANCELLED } });
    expect((await errorOf(clients.process.stopProcess(selectId("exec-1")))).code).toBe(Code.NotFound);
  });

  it("ends a shell that is typed at, which ignores TERM, without force", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const id = await startAndLeave(clients, { argv: ["bash", "--norc", "-i"], pty: PTY });
    await eventually("it prompts", async () => {
      return ((await clients.process.getProcess(selectId(id))).process?.written?.pty ?? 0n) > 0n;
    });
    expect(await clients.process.stopProcess(selectId(id))).toMatchObject({ forced: false, survivingProcesses: 0 });
  });
});

describe("when the daemon stops", () => {
  it("started processes are ended, also one that its follower holds back", async () => {
    using directory = temporaryDirectory();
    const mark = `${directory.path}/sleep`;
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "60s", "--kill-grace", "200ms"] });
    await using clients = connectTo(daemon.url);
    await startAndLeave(clients, { command: `setsid sleep 1000 ${mark} & trap '' TERM; while :; do sleep 0.1; done; : ${mark}` });
    const held = clients.process.start({ command: `yes ${mark}`, backpressure: true })[Symbol.asyncIterator]();
    await held.next();
    expect(await daemon.stop()).toBe(0);
    await eventually("all are gone", () => processesNamed(mark).length === 0);
  });
});

describe("when the daemon stops, a follower that reads no more", () => {
  it("does not hold it up", async () => {
    await using daemon = await startDaemon({ args: ["--shutdown-grace", "60s", "--kill-grace", "200ms"] });
    await using clients = connectTo(daemon.url);
    const body = envelope(Buffer.from(JSON.stringify({ command: "yes", id: "flood" })));
    const head = [
      "POST /picod.v1.ProcessService/Start HTTP/1.1",
      "host: picod",
      `authorization: Bearer ${TOKEN}`,
      "content-type: application/connect+json",
      `content-length: ${body.length}`,
    ];
    const socket = connect(daemon.port, "127.0.0.1");
    socket.pause().on("error", () => undefined);
    socket.write(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
    await eventually("it floods", async () => {
      const { process } = await clients.process.getProcess(selectId("flood")).catch(() => ({ process: undefined }));
      return (process?.written?.stdout ?? 0n) > 100_000_000n;
    });
    const startedAt = performance.now();
    expect(await daemon.stop()).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    socket.destroy();
  });
});

describe("when memory runs out", () => {
  it("the command is ended as OUT_OF_MEMORY, and the daemon lives", async () => {
    await using cgroup = createMemoryCgroup(200 * 1024 * 1024);
    await using daemon = await startDaemon({ wrapper: cgroup.wrapper });
    await using clients = connectTo(daemon.url);
    const eats = { argv: ["tail", "/dev/zero"] };
    const { ended } = await followToEnd(clients.process.start(eats));
    expect(ended.outcome).toMatchObject({
      reason: Outcome_Reason.OUT_OF_MEMORY,
      exitCode: 137,
      signal: "SIGKILL",
      message: "ended by the kernel: out of memory",
    });
    expect(await clients.process.execute({ ...eats, timeout: 20 })).toMatchObject({
      outcome: { reason: Outcome_Reason.OUT_OF_MEMORY },
    });
    expect(await clients.process.execute({ command: "echo alive" })).toMatchObject({ stdout: "alive\n" });
  });
});
