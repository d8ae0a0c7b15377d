import { CommandExitError, NotFoundError, TimeoutError } from "e2b";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { processesNamed } from "../helpers/processes.js";
import { withSandbox } from "./e2b-sandbox.js";

const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => new Error("no error"),
    (error: unknown) => error,
  );

describe("commands of E2B's client", () => {
  it("run, with output, exit codes, environment, directory and user", () =>
    withSandbox("root", async ({ commands }, home) => {
      const chunks: string[] = [];
      const onStdout = (chunk: string) => void chunks.push(`1 ${chunk}`);
      const onStderr = (chunk: string) => void chunks.push(`2 ${chunk}`);
      expect(await commands.run("echo out; echo err >&2", { onStdout, onStderr })).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exitCode: 0,
      });
      expect(chunks.toSorted()).toEqual(["1 out\n", "2 err\n"]);
      expect(await errorOf(commands.run("exit 3"))).toMatchObject({
        name: "CommandExitError",
        exitCode: 3,
        error: "exit status 3",
      });
      const { stdout } = await commands.run("pwd; echo $PWD $A $E2B_SANDBOX; whoami; id -G", {
        cwd: home,
        envs: { A: "b", PWD: "/no" },
      });
      expect(stdout).toBe(`${home}\n${home} b false\nroot\n0\n`);
      expect((await commands.run("whoami; echo $USER $LOGNAME", { user: "daemon", cwd: "/" })).stdout).toBe(
        "daemon\ndaemon daemon\n",
      );
      expect(await errorOf(commands.run("true", { user: "nobody-at-all" }))).toMatchObject({
        name: "AuthenticationError",
        message: expect.stringContaining("invalid username: 'nobody-at-all'"),
      });
      expect(await errorOf(commands.run("true", { cwd: "/no/such" }))).toMatchObject({
        name: "InvalidArgumentError",
        message: expect.stringContaining("cwd '/no/such' does not exist"),
      });
      expect((await commands.run("cat /run/e2b/.E2B_SANDBOX")).stdout).toBe("false");
      const big = await commands.run("head -c 2000000 /dev/zero | tr '\\0' x");
      expect(big.stdout).toHaveLength(2_000_000);
      const broken = await commands.run(`printf '${"a".repeat(8191)}\\xe2'`);
      expect(broken.stdout).toBe(`${"a".repeat(8191)}\ufffd`);
    }));

  it("end at their time limit with all that they started", () =>
    withSandbox("root", async ({ commands }) => {
      const error = await errorOf(commands.run("sleep 1000.5 & sleep 1000.5", { timeoutMs: 500 }));
      expect(error).toBeInstanceOf(TimeoutError);
      await eventually("all have ended", () => processesNamed("1000.5").length === 0);
      await eventually("none is listed", async () => (await commands.list()).length === 0);
    }));

  it("run in the background, are listed, connected to and killed with all that they started", () =>
    withSandbox("root", async ({ commands }) => {
      const handle = await commands.run("echo one; sleep 1000.75 & sleep 1000.75", { background: true, timeoutMs: 0 });
      expect(await commands.list()).toMatchObject([
        { pid: handle.pid, cmd: "/bin/bash", args: ["-l", "-c", expect.any(String)] },
      ]);
      await eventually("both run", () => processesNamed("1000.75").length >= 3);
      const connected = await commands.connect(handle.pid, { timeoutMs: 0 });
      await handle.disconnect();
      expect(await connected.kill()).toBe(true);
      expect(processesNamed("1000.75")).toEqual([]);
      expect(await commands.list()).toEqual([]);
      const error = await errorOf(connected.wait());
      expect(error).toBeInstanceOf(CommandExitError);
      expect(error).toMatchObject({ exitCode: -1, error: "signal: killed" });
      expect(await commands.kill(handle.pid)).toBe(false);
      expect(await errorOf(commands.connect(4_000_000))).toBeInstanceOf(NotFoundError);
    }));

  it("tell their end to who connects shortly after it, and end with their output", () =>
    withSandbox("root", async ({ commands }) => {
      const short = await commands.run("exit 7", { background: true });
      await errorOf(short.wait());
      const again = await commands.connect(short.pid);
      expect(await errorOf(again.wait())).toMatchObject({ exitCode: 7 });
      expect((await commands.run("(sleep 0.5; echo late) & echo early")).stdout).toBe("early\nlate\n");
    }));

  it("take input, or find none", () =>
    withSandbox("root", async ({ commands }) => {
      const cat = await commands.run("cat", { background: true, stdin: true });
      await commands.sendStdin(cat.pid, "typed ");
      await commands.sendStdin(cat.pid, "text");
      await commands.closeStdin(cat.pid);
      expect((await cat.wait()).stdout).toBe("typed text");
      const other = await commands.run("cat", { background: true, stdin: true });
      await other.sendStdin("by its ");
      await other.sendStdin(Buffer.from("handle"));
      await other.closeStdin();
      expect((await other.wait()).stdout).toBe("by its handle");
      expect((await commands.run("cat; echo end")).stdout).toBe("end\n");
      const deaf = await commands.run("exec sleep 1000", { background: true });
      expect(await errorOf(commands.sendStdin(deaf.pid, "text"))).toMatchObject({
        message: expect.stringContaining("error writing to stdin"),
      });
      await commands.closeStdin(deaf.pid);
      await deaf.kill();
    }));
});

describe("terminals of E2B's client", () => {
  it("are made, typed into, resized, reconnected to and killed", () =>
    withSandbox("root", async ({ pty }) => {
      let shown = "";
      const onData = (data: Uint8Array) => {
        shown += Buffer.from(data).toString();
      };
      const type = (pid: number, text: string) => pty.sendInput(pid, Buffer.from(text));
      const first = await pty.create({ cols: 81, rows: 25, onData, timeoutMs: 0 });
      await type(first.pid, "stty size; echo $TERM\n");
      await eventually("the size is shown", () => /25 81\r\nxterm-256color/.test(shown));
      await pty.resize(first.pid, { cols: 100, rows: 30 });
      await first.disconnect();
      shown = "";
      const second = await pty.connect(first.pid, { onData });
      await type(first.pid, "stty size\n");
      await eventually("the new size is shown", () => shown.includes("30 100"));
      await type(first.pid, "exit 4\n");
      expect(await errorOf(second.wait())).toMatchObject({ exitCode: 4 });
      const third = await pty.create({ cols: 80, rows: 24, onData });
      expect(await pty.kill(third.pid)).toBe(true);
      expect(await errorOf(third.wait())).toMatchObject({ exitCode: -1 });
      expect(await pty.kill(third.pid)).toBe(false);
    }));
});
