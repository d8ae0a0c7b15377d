import { type Client, Code, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Process, type ProcessEvent, Signal, type StartResponse } from "../../src/gen/envd/process/process_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

type Envd = Client<typeof Process>;

async function withEnvd(use: (envd: Envd, daemon: Daemon) => Promise<void>, args: string[] = []): Promise<void> {
  await using daemon = await startDaemon({ args });
  await using clients: Clients = connectTo(daemon.url, { protocol: "Connect over HTTP/1.1" });
  await use(createClient(Process, clients.transport), daemon);
}

const sh = (command: string, more: object = {}) => ({ process: { cmd: "/bin/sh", args: ["-c", command], ...more } });
const byPid = (pid: number) => ({ process: { selector: { case: "pid" as const, value: pid } } });
const byTag = (tag: string) => ({ process: { selector: { case: "tag" as const, value: tag } } });
const input = (text: string, kind: "stdin" | "pty" = "stdin") => ({ input: { case: kind, value: Buffer.from(text) } });

/** A stream that is read in the background. */
class Followed {
  readonly events: ProcessEvent["event"][] = [];
  readonly ended: Promise<void>;

  constructor(messages: AsyncIterable<{ event?: ProcessEvent | undefined }>) {
    this.ended = (async () => {
      for await (const { event } of messages) if (event !== undefined) this.events.push(event.event);
    })();
    // Who wants to know waits for it.
    this.ended.catch(() => undefined);
  }

  async pid(): Promise<number> {
    await Promise.race([this.ended, eventually("it has started", () => this.events.length > 0)]);
    const [first] = this.events;
    return first?.case === "start" ? first.value.pid : 0;
  }

  text(kind: "stdout" | "stderr" | "pty" = "stdout"): string {
    const chunks = this.events.map((event) =>
      event.case === "data" && event.value.output.case === kind ? event.value.output.value : "",
    );
    return chunks.map((chunk) => Buffer.from(chunk).toString()).join("");
  }

  get end() {
    const last = this.events.at(-1);
    return last?.case === "end" ? last.value : undefined;
  }
}

const follow = (messages: AsyncIterable<StartResponse>) => new Followed(messages);

describe("process.Process", () => {
  it.each([
    [sh("exit 0"), { exitCode: 0, exited: true, status: "exit status 0" }],
    [sh("exit 3"), { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" }],
    [sh("kill -KILL $$"), { exitCode: -1, exited: false, status: "signal: killed", error: "signal: killed" }],
    [sh("kill -SEGV $$"), { exitCode: -1, status: "signal: segmentation fault" }],
    [sh("kill -USR1 $$"), { exitCode: -1, status: "signal: user defined signal 1" }],
    [{ process: { cmd: "no-such-program" } }, { exitCode: 127, exited: true }],
    [{ process: { cmd: "/no/such" } }, { exitCode: 127 }],
    [{ process: { cmd: "/etc/passwd" } }, { exitCode: 126 }],
    [{}, { exitCode: 127 }],
  ])("reports how %j ended", (request, end) =>
    withEnvd(async (envd) => {
      const followed = follow(envd.start(request));
      await followed.ended;
      expect(await followed.pid()).toBeGreaterThan(1);
      expect(followed.end).toMatchObject(end);
      if (end.exitCode === 0) expect(followed.end?.error).toBeUndefined();
      if (end.exitCode === 127) expect(followed.text("stderr")).toContain("No such file or directory");
      if (end.exitCode === 126) expect(followed.text("stderr")).toContain("Permission denied");
    }),
  );

  it("gives a command a bare environment", () =>
    withEnvd(
      async (envd) => {
        const followed = follow(envd.start({ process: { cmd: "env", envs: { MINE: "1", PWD: "/no" }, cwd: "/tmp" } }));
        await followed.ended;
        const lines = followed
          .text()
          .trim()
          .split("\n")
          .filter((line) => !/^(PATH|PICOD_PROCESS_ID)=/.test(line));
        expect(lines.sort()).toEqual([
          "CI=1",
          "E2B_SANDBOX=false",
          "HOME=/root",
          "LOGNAME=root",
          "MINE=1",
          "PWD=/tmp",
          "USER=root",
        ]);
      },
      ["--env", "CI=1", "--envd-user", "root"],
    ));

  it("runs as --envd-user unless a name is given, in a directory that this user can enter", () =>
    withEnvd(
      async (envd) => {
        const asDefault = follow(envd.start(sh("id -un; pwd", { cwd: "/" })));
        await asDefault.ended;
        expect(asDefault.text()).toBe("nobody\n/\n");
        for (const [cwd, why] of [
          ["/root", "cannot be entered"],
          ["/etc/passwd", "is not a directory"],
          ["", "does not exist"],
        ] as const) {
          const refused = follow(envd.start(sh("true", { cwd })));
          await expect(refused.ended).rejects.toMatchObject({
            code: Code.InvalidArgument,
            rawMessage: expect.stringContaining(why),
          });
        }
      },
      ["--envd-user", "nobody"],
    ));

  it("finds processes by tag, several of one tag too, and forgets an end when the tag is taken again", () =>
    withEnvd(async (envd) => {
      const first = follow(envd.start({ ...sh("exit 1"), tag: "job" }));
      await first.ended;
      const late = new Followed(envd.connect(byTag("job")));
      await late.ended;
      expect(late.events.map((event) => event.case)).toEqual(["start", "end"]);
      expect(late.end?.exitCode).toBe(1);
      const second = follow(envd.start({ ...sh("exec sleep 1000"), tag: "job" }));
      const third = follow(envd.start({ ...sh("exec sleep 1000"), tag: "job" }));
      const pids = [await second.pid(), await third.pid()];
      const { processes } = await envd.list({});
      expect(processes.map(({ pid, tag }) => [pid, tag])).toEqual(pids.map((pid) => [pid, "job"]));
      await expect(new Followed(envd.connect(byPid(await first.pid()))).ended).rejects.toMatchObject({ code: Code.NotFound });
      await envd.sendSignal({ ...byTag("job"), signal: Signal.SIGTERM });
      await eventually("one has ended", () => second.end !== undefined);
      expect(second.end).toMatchObject({ exitCode: -1, error: "signal: terminated" });
      await envd.sendSignal({ ...byTag("job"), signal: Signal.SIGKILL });
      expect((await envd.list({})).processes).toEqual([]);
    }));

  it("shows what is new to who connects, and what was before when a header asks for it", () =>
    withEnvd(async (envd) => {
      const started = follow(envd.start(sh("echo first; echo oops >&2; read line; echo second")));
      await eventually("it has printed", () => started.text() === "first\n" && started.text("stderr") === "oops\n");
      const pid = await started.pid();
      const connect = (replay?: string) =>
        new Followed(envd.connect(byPid(pid), { headers: replay === undefined ? {} : { "x-picod-replay": replay } }));
      const followed = [connect(), connect("all"), connect("2"), connect("2,5")];
      for (const each of followed) await each.pid();
      await expect(connect("some").ended).rejects.toMatchObject({ code: Code.InvalidArgument });
      await expect(connect("9000").ended).rejects.toMatchObject({ code: Code.OutOfRange });
      await envd.sendInput({ ...byPid(pid), input: input("\n") });
      await Promise.all(followed.map(({ ended }) => ended));
      expect(followed.map((each) => [each.text(), each.text("stderr")])).toEqual([
        ["second\n", ""],
        ["first\nsecond\n", "oops\n"],
        ["rst\nsecond\n", "oops\n"],
        ["rst\nsecond\n", ""],
      ]);
    }));

  it("ends the call at its deadline, then the process, whoever else follows it", () =>
    withEnvd(async (envd) => {
      const started = follow(envd.start(sh("setsid sleep 1000.375 & exec sleep 1000.375"), { timeoutMs: 1500 }));
      const other = new Followed(envd.connect(byPid(await started.pid())));
      await expect(started.ended).rejects.toMatchObject({ code: Code.DeadlineExceeded });
      expect(started.end).toBeUndefined();
      await other.ended;
      expect(other.end).toMatchObject({ exitCode: -1, error: "signal: killed" });
      await eventually("all have ended", () => processesNamed("1000.375").length === 0);
    }));

  it("keeps a process, and its time limit, when the caller has gone", () =>
    withEnvd(async (envd) => {
      const abort = new AbortController();
      const started = follow(envd.start(sh("exec sleep 1000.625"), { timeoutMs: 2000, signal: abort.signal }));
      const pid = await started.pid();
      abort.abort();
      const other = new Followed(envd.connect(byPid(pid)));
      expect(await other.pid()).toBe(pid);
      await other.ended;
      expect(other.end?.error).toBe("signal: killed");
    }));

  it("says that it is there in the interval that is asked for", () =>
    withEnvd(async (envd) => {
      const headers = { "keepalive-ping-interval": "1" };
      const started = follow(envd.start(sh("sleep 2.5"), { headers }));
      await started.ended;
      expect(started.events.map((event) => event.case).join()).toMatch(/^start(,keepalive){2,},end$/);
    }));

  it("refuses what does not fit the process", () =>
    withEnvd(async (envd) => {
      const piped = follow(envd.start(sh("exec sleep 1000")));
      const deaf = follow(envd.start({ ...sh("exec sleep 1000"), stdin: false }));
      const shown = follow(envd.start({ ...sh("stty size; exec sleep 1000"), pty: { size: { cols: 70_000, rows: 24 } } }));
      const [pipe, none, pty] = [byPid(await piped.pid()), byPid(await deaf.pid()), byPid(await shown.pid())];
      await eventually("the size is cut to 16 bits", () => shown.text("pty") === "24 4464\r\n");
      const calls: [Promise<unknown>, Code][] = [
        [envd.sendInput({ ...pipe, input: input("a", "pty") }), Code.Internal],
        [envd.sendInput({ ...pty, input: input("a") }), Code.Internal],
        [envd.sendInput({ ...none, input: input("a") }), Code.Internal],
        [envd.sendInput(pipe), Code.Unimplemented],
        [envd.sendInput({ ...byPid(4_000_000), input: input("a") }), Code.NotFound],
        [envd.sendInput({ input: input("a") }), Code.Unimplemented],
        [envd.update({ ...pipe, pty: { size: { cols: 1, rows: 1 } } }), Code.Internal],
        [envd.closeStdin(pty), Code.Unknown],
        [envd.sendSignal({ ...pipe, signal: 1 as Signal }), Code.Unimplemented],
        [envd.sendSignal({ ...byTag("none"), signal: Signal.SIGKILL }), Code.NotFound],
      ];
      for (const [call, code] of calls) await expect(call).rejects.toMatchObject({ code });
      expect(await envd.update(pipe)).toBeDefined();
      expect(await envd.closeStdin(none)).toBeDefined();
      for (let times = 0; times < 2; times++) expect(await envd.closeStdin(pipe)).toBeDefined();
      await expect(envd.sendInput({ ...pipe, input: input("a") })).rejects.toMatchObject({ code: Code.Internal });
    }));

  it("does not let one who takes nothing hold up another", { timeout: 60_000 }, () =>
    withEnvd(async (envd) => {
      const stalled = envd.start(sh("read line; head -c 20000000 /dev/zero; echo done >&2"))[Symbol.asyncIterator]();
      const first = await stalled.next();
      const event = first.value?.event?.event;
      const pid = event?.case === "start" ? event.value.pid : 0;
      const other = new Followed(envd.connect(byPid(pid)));
      await other.pid();
      await envd.sendInput({ ...byPid(pid), input: input("\n") });
      await other.ended;
      expect(other.text("stderr")).toBe("done\n");
      expect(other.text()).toHaveLength(20_000_000);
      await stalled.return?.();
    }),
  );

  it("is not there with --no-envd", () =>
    withEnvd(
      async (envd) => {
        await expect(envd.list({})).rejects.toMatchObject({ code: Code.Unimplemented });
      },
      ["--no-envd"],
    ));
});
