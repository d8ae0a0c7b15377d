import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { isAlive } from "../helpers/processes.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { connectMcp, type McpClient } from "./connect.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));
const scopesFile = join(workdir, "scopes.json");
const callers = ["one", "two"].map((name) => ({
  name,
  token: `token-of-${name}`,
  scopes: ["files:read", "files:write", "process"],
}));
const confined = {
  name: "confined",
  token: "token-of-confined",
  scopes: ["files:read", "files:write"],
  paths: [join(workdir, "own")],
};
writeFileSync(scopesFile, JSON.stringify({ callers: [...callers, confined] }), { mode: 0o600 });
mkdirSync(join(workdir, "own"));
const start = (...args: string[]) =>
  startDaemon({ args: ["--workdir", workdir, "--kill-grace", "200ms", "--scopes-file", scopesFile, ...args] });

let daemon: Daemon;
beforeAll(async () => {
  daemon = await start();
});
afterAll(() => daemon[Symbol.asyncDispose]());

/** A process in the background that has left the group of its command. */
async function leave(mcp: McpClient): Promise<number> {
  const { stdout } = await mcp.call("sandbox_exec", { command: "setsid sleep 62 >/dev/null 2>&1 & echo $!" });
  return Number(stdout);
}

const open = (mcp: McpClient) => mcp.call("sandbox_open");
const workflow = (daemon: Daemon, id: string, token?: string) =>
  connectMcp(daemon, { meta: { workflow_id: id, agent_id: "passed-over" }, ...(token !== undefined && { token }) });

describe("a session", () => {
  it("is that of the workflow, else of the agent, else of the connection", async () => {
    await using first = await workflow(daemon, "wf-1");
    await using again = await workflow(daemon, "wf-1");
    await using agent = await connectMcp(daemon, { meta: { agentId: "a:1" } });
    await using nobody = await connectMcp(daemon);
    await using other = await connectMcp(daemon);
    await expect(open(first)).resolves.toMatchObject({
      session_id: "workflow_wf-1_sandbox",
      image: "default",
      status: "ready",
      created: true,
    });
    await expect(open(again)).resolves.toMatchObject({ session_id: "workflow_wf-1_sandbox", created: false });
    await expect(open(agent)).resolves.toMatchObject({ session_id: "agent_a:1_sandbox", created: true });
    const ids = [(await open(nobody)).session_id, (await open(nobody)).session_id, (await open(other)).session_id];
    expect(ids[0]).toMatch(/^session_[0-9a-f]{8}_sandbox$/);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    await using bad = await connectMcp(daemon, { meta: { workflow_id: "../x" } });
    await expect(bad.failure("sandbox_open")).resolves.toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field: "workflow_id" },
    });
    await using number = await connectMcp(daemon, { meta: { workflow_id: 1 } });
    await expect(number.failure("sandbox_open")).resolves.toMatchObject({ reason: "INVALID_ARGUMENT" });
  });

  it("is never another caller's, whatever it is called", async () => {
    await using one = await workflow(daemon, "same", "token-of-one");
    await using two = await workflow(daemon, "same", "token-of-two");
    await one.call("sandbox_fs_write", { path: "secret", content: "1" });
    const pid = await leave(one);
    expect(isAlive(pid)).toBe(true);
    const [{ workdir: ofOne }, { workdir: ofTwo }] = await Promise.all([open(one), open(two)]);
    expect(ofTwo).not.toBe(ofOne);
    await expect(two.failure("sandbox_fs_read", { path: "secret" })).resolves.toMatchObject({ reason: "ENOENT" });
    const { stdout_omitted: omitted } = await one.call("sandbox_exec", { command: "seq 1 50000" });
    const { resource } = omitted as { resource: string };
    await expect(two.client.readResource({ uri: resource })).rejects.toMatchObject({ code: -32002 });
    await two.call("sandbox_close");
    expect(isAlive(pid)).toBe(true);
    await expect(one.client.readResource({ uri: resource })).resolves.toMatchObject({ contents: [{ uri: resource }] });
    await one.call("sandbox_close");
    expect(isAlive(pid)).toBe(false);
  });

  it("is in the paths that its caller is confined to", async () => {
    await using mcp = await connectMcp(daemon, { token: "token-of-confined" });
    const { path } = await mcp.call("sandbox_fs_write", { path: "a", content: "1" });
    expect(path).toContain(join(workdir, "own/.sandbox-sessions/session_"));
    await expect(mcp.failure("sandbox_fs_read", { path: "/etc/hostname" })).resolves.toMatchObject({ code: "permission_denied" });
    await expect(mcp.failure("sandbox_fs_read", { path: scopesFile })).resolves.toMatchObject({ code: "permission_denied" });
  });

  it("without a directory is no less good for what is elsewhere", async () => {
    writeFileSync(join(workdir, "a-file"), "here");
    await using daemon = await start("--session-dir", join(workdir, "a-file/sessions"));
    await using mcp = await connectMcp(daemon);
    await expect(mcp.failure("sandbox_open")).resolves.toMatchObject({ reason: "ENOTDIR" });
    await expect(mcp.failure("sandbox_fs_read", { path: "a" })).resolves.toMatchObject({ reason: "ENOTDIR" });
    await expect(mcp.call("sandbox_fs_read", { path: join(workdir, "a-file") })).resolves.toMatchObject({ content: "here" });
    await expect(mcp.call("sandbox_exec", { command: "pwd", workdir: "/" })).resolves.toMatchObject({ stdout: "/\n" });
  });

  it("ends with its processes, those that have left their group included", async () => {
    await using mcp = await workflow(daemon, "wf-2");
    await mcp.call("sandbox_fs_write", { path: "kept", content: "1" });
    const pid = await leave(mcp);
    // What has left nothing behind is forgotten now and then; this one is not.
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 20 }, () => mcp.call("sandbox_exec", { command: "true" })));
    }
    expect(isAlive(pid)).toBe(true);
    await expect(mcp.call("sandbox_close")).resolves.toEqual({ closed: true, session_id: "workflow_wf-2_sandbox" });
    expect(isAlive(pid)).toBe(false);
    await expect(mcp.call("sandbox_close")).resolves.toMatchObject({ closed: false });
    await expect(open(mcp)).resolves.toMatchObject({ created: true });
    await expect(mcp.call("sandbox_fs_read", { path: "kept" })).resolves.toMatchObject({ content: "1" });
    const { workdir: here } = await open(mcp);
    await mcp.call("sandbox_close", { remove_files: true });
    expect(existsSync(String(here))).toBe(false);
    await expect(mcp.call("sandbox_fs_list")).resolves.toMatchObject({ entries: [] });
  });

  it("is opened again when the one before it has gone, with its files", async () => {
    await using daemon = await start("--kill-grace", "1s");
    await using mcp = await workflow(daemon, "wf-5");
    await using again = await workflow(daemon, "wf-5");
    const started = (name: string) =>
      eventually(name, async () => (await mcp.tryCall("sandbox_fs_read", { path: name })).isError !== true);
    await mcp.call("sandbox_process_start", { command: 'trap "" TERM; echo > one; while :; do sleep 0.05; done' });
    const running = again.failure("sandbox_exec", { command: "echo > two; sleep 66" });
    await started("one");
    await started("two");
    const closing = mcp.call("sandbox_close", { remove_files: true });
    await expect(running).resolves.toMatchObject({ reason: "SESSION_ENDED" });
    await expect(again.call("sandbox_fs_write", { path: "mine", content: "1" })).resolves.toMatchObject({ size_bytes: 1 });
    await closing;
    await expect(again.call("sandbox_fs_read", { path: "mine" })).resolves.toMatchObject({ content: "1" });
  });

  it("is not opened to be closed, nor to see what runs in it", async () => {
    await using mcp = await workflow(daemon, "wf-6");
    await expect(mcp.call("sandbox_process_list")).resolves.toEqual({ processes: [] });
    await expect(mcp.call("sandbox_close")).resolves.toEqual({ closed: false, session_id: "workflow_wf-6_sandbox" });
    const { workdir: here } = await open(mcp);
    await mcp.call("sandbox_close", { remove_files: true });
    await mcp.call("sandbox_close");
    expect(existsSync(String(here))).toBe(false);
  });

  it("of a connection ends with it", async () => {
    const mcp = await connectMcp(daemon);
    const pid = await leave(mcp);
    await mcp.transport.terminateSession();
    await eventually("the end of what it left", () => !isAlive(pid));
    await mcp.client.close();
  });

  it("ends when nobody has used it for a while", async () => {
    await using daemon = await start("--session-idle-timeout", "500ms");
    await using mcp = await workflow(daemon, "wf-3");
    const pid = await leave(mcp);
    await eventually("the end of what it left", () => !isAlive(pid));
  });

  it("ends when its time is over, whoever uses it", async () => {
    await using daemon = await start("--session-max-lifetime", "1s");
    await using mcp = await workflow(daemon, "wf-4");
    const failure = await mcp.failure("sandbox_exec", { command: "sleep 63" });
    expect(failure).toMatchObject({
      reason: "SESSION_ENDED",
      code: "aborted",
      message: expect.stringContaining("--session-max-lifetime"),
    });
    await expect(open(mcp)).resolves.toMatchObject({ created: true });
  });

  it("does not outlive the daemon", async () => {
    const daemon = await start();
    const mcp = await connectMcp(daemon);
    const pid = await leave(mcp);
    await expect(daemon.stop()).resolves.toBe(0);
    expect(isAlive(pid)).toBe(false);
    await mcp.client.close();
  });

  it("is of one image", async () => {
    await using daemon = await start("--image-name", "python:3.12");
    await using mcp = await connectMcp(daemon);
    await expect(mcp.call("sandbox_open", { image: "python:3.12" })).resolves.toMatchObject({ image: "python:3.12" });
    await expect(mcp.failure("sandbox_open", { image: "node:24" })).resolves.toMatchObject({
      reason: "IMAGE_NOT_AVAILABLE",
      metadata: { image: "python:3.12" },
    });
  });

  it("is below the root that file operations are confined to", async () => {
    const root = mkdtempSync(join(workdir, "root-"));
    await using daemon = await startDaemon({ args: ["--root", root] });
    await using mcp = await connectMcp(daemon);
    const { workdir: here } = await open(mcp);
    expect(here).toContain(`${root}/.sandbox-sessions/`);
    await expect(mcp.call("sandbox_fs_write", { path: `${here}/a`, content: "1" })).resolves.toMatchObject({ path: `${here}/a` });
    await expect(mcp.call("sandbox_exec", { command: "cat a" })).resolves.toMatchObject({ stdout: "1" });
    await expect(mcp.call("sandbox_fs_read", { path: "a" })).resolves.toMatchObject({ content: "1", path: `${here}/a` });
    await expect(mcp.failure("sandbox_fs_read", { path: "/etc/hostname" })).resolves.toMatchObject({ reason: "ENOENT" });
  });
});
