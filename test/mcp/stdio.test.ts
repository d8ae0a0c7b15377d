import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, connectStdio, INITIALIZE, spawnMcp } from "./stdio-client.js";

const isAlive = (pid: unknown) => {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
};

describe("picod mcp", () => {
  it("serves the tools of this machine to the program that has started it, and ends with it and all that it started", async () => {
    using directory = temporaryDirectory();
    const mcp = await connectStdio(["--workdir", directory.path, "--image-name", "here"], {
      PICOD_ACCESS_TOKEN: "not asked for",
    });
    const { pid: server } = mcp;
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).toEqual([
      "sandbox_close",
      "sandbox_exec",
      "sandbox_fs_delete",
      "sandbox_fs_edit",
      "sandbox_fs_list",
      "sandbox_fs_read",
      "sandbox_fs_search",
      "sandbox_fs_write",
      "sandbox_open",
      "sandbox_process_input",
      "sandbox_process_list",
      "sandbox_process_output",
      "sandbox_process_start",
      "sandbox_process_stop",
    ]);
    const { workdir, image } = await mcp.call("sandbox_open");
    expect([image, workdir]).toEqual(["here", expect.stringMatching(`^${directory.path}/`)]);
    await expect(mcp.call("sandbox_exec", { command: "pwd; echo $PICOD_ACCESS_TOKEN" })).resolves.toMatchObject({
      stdout: `${workdir}\n\n`,
    });
    const seen: number[] = [];
    await mcp.call("sandbox_exec", { command: "true" }, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen.length).toBeGreaterThan(0);
    const started = await mcp.call("sandbox_process_start", { command: "setsid sleep 1000 & exec sleep 1000" });
    const children = readdirSync(`/proc/${server}/task`).length > 0 && isAlive(started.pid);
    expect(children).toBe(true);
    await mcp[Symbol.asyncDispose]();
    expect(isAlive(server)).toBe(false);
    await eventually("its processes are gone", () => !isAlive(started.pid));
  });

  it("writes nothing but the protocol to the standard output, goes on after what is none, and exits with 0 at the end", async () => {
    using directory = temporaryDirectory();
    const { child, stderr, ended } = spawnMcp(["--workdir", directory.path]);
    await expect(ask(child, INITIALIZE)).resolves.toMatchObject({ id: 1, result: { serverInfo: { name: "picod" } } });
    child.stdin.write("this is no message\n");
    await expect(ask(child, { jsonrpc: "2.0", id: 2, method: "ping" })).resolves.toEqual({ jsonrpc: "2.0", id: 2, result: {} });
    child.stdin.end();
    expect(await ended).toBe(0);
    expect(await stderr).toContain("what came is no message of MCP");
  });

  it("ends a command that runs when the input ends, without its answer", async () => {
    using directory = temporaryDirectory();
    const { child, ended, stderr } = spawnMcp(["--workdir", directory.path]);
    await ask(child, INITIALIZE);
    const exec = { name: "sandbox_exec", arguments: { command: "sleep 1000" }, _meta: { progressToken: 1 } };
    const running = ask(child, { jsonrpc: "2.0", id: 2, method: "tools/call", params: exec });
    await expect(running).resolves.toMatchObject({ method: "notifications/progress" });
    child.stdin.end();
    expect(await ended).toBe(0);
    expect(await stderr).toContain('"code":"canceled"');
  });

  it.each(["SIGTERM", "SIGHUP"] as const)("exits with 0 on %s, and takes along what it has started", async (signal) => {
    using directory = temporaryDirectory();
    const { child, ended } = spawnMcp(["--workdir", directory.path]);
    await ask(child, INITIALIZE);
    const start = { name: "sandbox_process_start", arguments: { command: "exec sleep 1000" } };
    const started = await ask(child, { jsonrpc: "2.0", id: 2, method: "tools/call", params: start });
    const { pid } = (started as { result: { structuredContent: { pid: number } } }).result.structuredContent;
    expect(isAlive(pid)).toBe(true);
    child.kill(signal);
    expect(await ended).toBe(0);
    await eventually("its process is gone", () => !isAlive(pid));
  });

  it.each([
    ["a flag of its other half", ["--ca", "/x.pem"], "error: --ca goes with --url"],
    ["a value that is none", ["--mcp-timeout", "soon"], "invalid value for --mcp-timeout"],
    ["a directory that is not there", ["--root", "/nowhere"], "/nowhere"],
  ])("refuses %s with exit code 2", async (_what, args, message) => {
    const { ended, stdout, stderr } = spawnMcp(args);
    expect([await ended, await stdout]).toEqual([2, ""]);
    expect(await stderr).toContain(message);
  });
});
