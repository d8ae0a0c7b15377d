import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectMcp, type McpClient } from "./connect.js";

interface Piece {
  readonly content: string;
  readonly offset: number;
  readonly next_offset: number;
  readonly total_bytes: number;
  readonly trimmed_bytes?: number;
}

interface Output {
  readonly status: string;
  readonly exit_code?: number;
  readonly outcome?: string;
  readonly stdout: Piece;
  readonly stderr: Piece;
}

/** Session and client on a daemon of its own, with one process. */
async function withProcess(command: string, run: (mcp: McpClient, id: string, pid: number) => Promise<void>, more: object = {}) {
  using directory = temporaryDirectory();
  await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
  await using mcp = await connectMcp(daemon);
  const { process_id: id, pid, status } = await mcp.call("sandbox_process_start", { command, ...more });
  expect(status).toBe("running");
  await run(mcp, String(id), Number(pid));
}

async function outputOf(mcp: McpClient, id: string, more: object = {}): Promise<Output> {
  return (await mcp.call("sandbox_process_output", { process_id: id, ...more })) as unknown as Output;
}

/** Reads on until the standard output has ended or holds that. */
async function readUntil(mcp: McpClient, id: string, marker: string): Promise<string> {
  let text = "";
  for (let from = 0; !text.includes(marker); ) {
    const { stdout, status } = await outputOf(mcp, id, { stdout_offset: from, wait_seconds: 20 });
    text += stdout.content;
    from = stdout.next_offset;
    if (status === "ended" && from === stdout.total_bytes) break;
  }
  return text;
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("the tools for background processes", () => {
  it("start one, talk to it, and tell how it has ended", async () => {
    await withProcess("read line; echo got $line; echo bad >&2; cat; exit 7", async (mcp, id, pid) => {
      await expect(outputOf(mcp, id)).resolves.toMatchObject({ status: "running", stdout: { content: "", total_bytes: 0 } });
      const waiting = outputOf(mcp, id, { wait_seconds: 20, stderr_offset: 0 });
      await mcp.call("sandbox_process_input", { process_id: id, content: "this\n" });
      // It woke up for the first of the two lines.
      expect((await waiting).stdout.content + (await waiting).stderr.content).not.toBe("");
      expect(await readUntil(mcp, id, "\n")).toBe("got this\n");
      await expect(mcp.call("sandbox_process_list")).resolves.toMatchObject({
        processes: [{ process_id: id, pid, status: "running", pty: false, command: expect.stringMatching(/^read line/) }],
      });
      await expect(
        mcp.call("sandbox_process_input", { process_id: id, content: "ZW5k", encoding: "base64", close: true }),
      ).resolves.toEqual({ process_id: id, input_bytes: 8, closed: true });
      expect(await readUntil(mcp, id, "nothing")).toBe("got this\nend");
      const whole = await outputOf(mcp, id, { stdout_offset: 4, max_bytes: 4, wait_seconds: 20, encoding: "base64" });
      expect(whole).toMatchObject({ status: "ended", exit_code: 7, outcome: "exited", stderr: { content: "YmFkCg==" } });
      expect(whole.stdout).toEqual({ content: "dGhpcw==", offset: 4, next_offset: 8, total_bytes: 12 });
      await expect(mcp.failure("sandbox_process_input", { process_id: id, content: "x" })).resolves.toMatchObject({
        reason: "PROCESS_ENDED",
      });
      await expect(mcp.failure("sandbox_process_output", { process_id: id, stdout_offset: 99 })).resolves.toMatchObject({
        reason: "OFFSET_BEYOND_END",
      });
    });
  });

  it("cut no character, and say what is no longer kept", async () => {
    await withProcess("head -c 3000000 /dev/zero | tr '\\0' a; printf 'é🙂'; read line", async (mcp, id) => {
      for (let seen = 0; seen < 3_000_006; )
        seen = (await outputOf(mcp, id, { stdout_offset: seen, wait_seconds: 20 })).stdout.total_bytes;
      const { stdout } = await outputOf(mcp, id);
      expect(stdout.trimmed_bytes).toBe(stdout.offset);
      expect(stdout).toMatchObject({ next_offset: stdout.offset + 16_384, total_bytes: 3_000_006 });
      const { stdout: end } = await outputOf(mcp, id, { stdout_offset: 2_999_999, max_bytes: 5 });
      expect(end).toMatchObject({ content: "aé", next_offset: 3_000_002 });
    });
  });

  it("stop it with all that it started, and say whether KILL was needed", async () => {
    await withProcess("trap '' TERM; (setsid sleep 1000 & echo $!); sleep 1000", async (mcp, id, pid) => {
      const child = Number(await readUntil(mcp, id, "\n"));
      await expect(mcp.call("sandbox_process_stop", { process_id: id, grace_seconds: 0.1 })).resolves.toMatchObject({
        status: "ended",
        outcome: "cancelled",
        forced: true,
        surviving_processes: 0,
      });
      // One that is dead is there until somebody asks how it ended.
      await eventually("the processes are gone", () => ![pid, child].some(isAlive));
      await expect(mcp.call("sandbox_process_stop", { process_id: id })).resolves.toMatchObject({ forced: false });
    });
  });

  it("give it a terminal", async () => {
    await withProcess(
      "stty size; read line; echo got $line",
      async (mcp, id) => {
        expect(await readUntil(mcp, id, "\n")).toBe("30 100\r\n");
        await mcp.call("sandbox_process_input", { process_id: id, content: "this\r" });
        expect(await readUntil(mcp, id, "got this\r\n")).toContain("got this\r\n");
        expect((await outputOf(mcp, id)).stderr).toBeUndefined();
      },
      { pty: { cols: 100, rows: 30 } },
    );
  });

  it("end with their session, and are nobody else's", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await using other = await connectMcp(daemon);
    const mcp = await connectMcp(daemon);
    const { process_id: id, pid } = await mcp.call("sandbox_process_start", { command: "sleep 1000 & sleep 1000" });
    await expect(other.failure("sandbox_process_output", { process_id: id })).resolves.toMatchObject({
      reason: "PROCESS_NOT_FOUND",
    });
    await expect(other.call("sandbox_process_list")).resolves.toEqual({ processes: [] });
    // Whoever waits for output hears that the session has ended.
    const waiting = mcp.failure("sandbox_process_output", { process_id: id, wait_seconds: 30 });
    await other.call("sandbox_close");
    expect(isAlive(Number(pid))).toBe(true);
    await mcp.call("sandbox_close");
    await expect(waiting).resolves.toMatchObject({ reason: "SESSION_ENDED" });
    await eventually("the processes are gone", () => daemon.children().length === 0);
    await mcp[Symbol.asyncDispose]();
  });

  it("say why one could not start", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path, "--shell", "/bin/sh"] });
    await using mcp = await connectMcp(daemon);
    const missing = await mcp.failure("sandbox_process_start", { command: "true", workdir: "nowhere" });
    expect(missing).toMatchObject({ reason: "ENOENT" });
    await expect(mcp.failure("sandbox_process_start", { command: "" })).resolves.toMatchObject({ reason: "INVALID_ARGUMENT" });
  });
});
