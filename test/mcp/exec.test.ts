import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { isAlive } from "../helpers/processes.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { connectMcp, type McpClient } from "./connect.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));
const start = (...args: string[]) => startDaemon({ args: ["--workdir", workdir, "--kill-grace", "200ms", ...args] });

let daemon: Daemon;
beforeAll(async () => {
  daemon = await start();
});
afterAll(() => daemon[Symbol.asyncDispose]());

/** The pid that a command of the session writes. */
async function pidIn(mcp: McpClient, path: string): Promise<number> {
  let pid = 0;
  await eventually(`a pid in ${path}`, async () => {
    const { structuredContent } = await mcp.tryCall("sandbox_fs_read", { path });
    pid = Number(structuredContent?.content);
    return pid > 0;
  });
  return pid;
}

describe("sandbox_exec", () => {
  it("says honestly that the time was up, and leaves nothing", async () => {
    await using mcp = await connectMcp(daemon);
    const result = await mcp.call("sandbox_exec", {
      command: "echo before; setsid sleep 60 & echo $! > pid; sleep 60",
      timeout_seconds: 0.5,
    });
    expect(result).toMatchObject({ exit_code: 124, stdout: "before\n", outcome: "timed_out", note: "timed out after 0.5 s" });
    const pid = await pidIn(mcp, "pid");
    expect(isAlive(pid)).toBe(false);
  });

  it("reports progress while it runs, to whoever has asked for it", async () => {
    await using mcp = await connectMcp(daemon);
    const heard: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const done = mcp.call(
      "sandbox_exec",
      { command: "echo some; until [ -e go ]; do sleep 0.05; done" },
      { onprogress: (each) => void heard.push(each) },
    );
    await eventually("two reports", () => heard.length > 1);
    await mcp.call("sandbox_fs_write", { path: "go", content: "" });
    await expect(done).resolves.toMatchObject({ exit_code: 0 });
    expect(heard[0]).toMatchObject({ progress: 0, total: 300 });
    expect(heard[1]?.progress).toBeGreaterThan(0);
    expect(heard[1]?.message).toContain("5 bytes of output");
  });

  it("ends its processes when it is cancelled", async () => {
    await using mcp = await connectMcp(daemon);
    const abort = new AbortController();
    const running = mcp.call("sandbox_exec", { command: "setsid sleep 61 & echo $! > pid; sleep 61" }, { signal: abort.signal });
    running.catch(() => undefined);
    const pid = await pidIn(mcp, "pid");
    expect(isAlive(pid)).toBe(true);
    abort.abort("enough");
    await expect(running).rejects.toThrow("enough");
    await eventually("the end of what it left", () => !isAlive(pid));
    await daemon.waitForLog(({ procedure, code }) => procedure === "mcp/sandbox_exec" && code === "canceled");
  });

  it("keeps what it has no room for, until the session is closed", async () => {
    await using mcp = await connectMcp(daemon);
    const result = await mcp.tryCall("sandbox_exec", { command: "seq 1 100000; printf '\\377%.0s' $(seq 1 50000) >&2" });
    const { stdout, stdout_omitted: omitted, stderr_omitted: omittedError } = result.structuredContent as Record<string, unknown>;
    const { total_bytes, omitted_bytes, omitted_lines, resource } = omitted as Record<string, unknown>;
    const whole = Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(total_bytes).toBe(whole.length);
    const [head = "", tail = ""] = String(stdout).split(`\n[… ${omitted_bytes} bytes (${omitted_lines} lines) omitted …]\n`);
    expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
    expect(head.length + tail.length + Number(omitted_bytes)).toBe(whole.length);
    expect(whole.slice(head.length, whole.length - tail.length).split("\n").length - 1).toBe(omitted_lines);
    expect(result.content[1]).toMatchObject({ type: "resource_link", uri: resource, size: whole.length });
    const { contents } = await mcp.client.readResource({ uri: resource as string });
    expect(contents).toEqual([{ uri: resource, mimeType: "text/plain", text: whole }]);
    const binary = await mcp.client.readResource({ uri: (omittedError as { resource: string }).resource });
    expect(Buffer.from((binary.contents[0] as { blob: string }).blob, "base64")).toEqual(Buffer.alloc(50_000, 0xff));
    expect((await mcp.client.listResources()).resources.map(({ uri }) => uri)).toContain(resource);
    for (const uri of [
      "picod://sessions/%/outputs/x/stdout",
      "picod://sessions//outputs/",
      "file:///etc/passwd",
      `${resource}x`,
    ]) {
      await expect(mcp.client.readResource({ uri }), uri).rejects.toMatchObject({ code: -32002 });
    }
    await mcp.call("sandbox_close");
    await expect(mcp.client.readResource({ uri: resource as string })).rejects.toMatchObject({ code: -32002 });
    expect((await mcp.client.listResources()).resources).toEqual([]);
  });

  it("runs where it is told to", async () => {
    await using mcp = await connectMcp(daemon);
    const { workdir: here } = await mcp.call("sandbox_open");
    await mcp.call("sandbox_fs_write", { path: "sub/a", content: "" });
    await expect(mcp.call("sandbox_exec", { command: "pwd", workdir: "sub" })).resolves.toMatchObject({
      stdout: `${here}/sub\n`,
    });
    await expect(mcp.call("sandbox_exec", { command: "pwd", workdir: "/tmp" })).resolves.toMatchObject({ stdout: "/tmp\n" });
    await expect(mcp.failure("sandbox_exec", { command: "pwd", workdir: "none" })).resolves.toMatchObject({
      reason: "ENOENT",
      code: "not_found",
    });
    await expect(mcp.failure("sandbox_exec", { command: "" })).resolves.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await expect(mcp.call("sandbox_exec", { command: "exec /none" })).resolves.toMatchObject({
      exit_code: 127,
      outcome: "exited",
    });
    await expect(mcp.call("sandbox_exec", { command: "kill -9 $$" })).resolves.toMatchObject({
      exit_code: 137,
      outcome: "signaled",
      note: "ended by SIGKILL",
    });
  });

  it("has an account of its own in the logs", async () => {
    const audit = join(workdir, "audit.log");
    await using daemon = await start("--audit-log", audit);
    await using mcp = await connectMcp(daemon);
    await mcp.call("sandbox_exec", { command: "true" });
    await mcp.failure("sandbox_fs_read", { path: "none" });
    await expect(mcp.client.callTool({ name: "none" })).rejects.toMatchObject({ code: -32602 });
    const lines = daemon.logs.filter(({ procedure }) => String(procedure).startsWith("mcp/"));
    expect(lines).toMatchObject([
      { procedure: "mcp/sandbox_exec", code: "ok", caller: "daemon", processId: expect.stringMatching(/^proc_/) },
      { procedure: "mcp/sandbox_fs_read", code: "not_found" },
    ]);
    const read = await mcp.call("sandbox_fs_read", { path: "/proc/self/none" }).catch((error: Error) => error.message);
    expect(read).toContain("ENOENT: cannot open /proc/self/none");
    await mcp
      .failure("sandbox_fs_read", { path: audit })
      .then((failure) => expect(failure).toMatchObject({ reason: "PATH_BLOCKED" }));
    const { stdout } = await mcp.call("sandbox_exec", { command: `cat ${audit}` });
    const records = String(stdout)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.find(({ procedure }) => procedure === "mcp/sandbox_exec")).toMatchObject({
      command_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      caller: "daemon",
      code: "ok",
    });
    expect(records.find(({ procedure }) => procedure === "mcp/sandbox_fs_read")).toMatchObject({
      paths: ["none"],
      code: "not_found",
    });
    const metrics = await (
      await fetch(`${daemon.url}/metrics`, { headers: { authorization: "Bearer test-token-4f1d2c" } })
    ).text();
    expect(metrics).toContain('picod_rpc_total{procedure="mcp/sandbox_exec",code="ok"} 2');
  });
});
