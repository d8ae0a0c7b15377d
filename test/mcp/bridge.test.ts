import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { SwitchedProxy } from "../client/switched-proxy.js";
import { makeCertificate } from "../helpers/certificates.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask, connectStdio, INITIALIZE, spawnMcp } from "./stdio-client.js";

const ENV = { PICOD_ACCESS_TOKEN: TOKEN };

describe("picod mcp --url", () => {
  it("serves the tools of a daemon, and takes its session along when it ends", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    const mcp = await connectStdio(["--url", daemon.url], ENV);
    expect((await mcp.client.listTools()).tools).toHaveLength(14);
    const { workdir } = await mcp.call("sandbox_open");
    const seen: string[] = [];
    // The client drops what comes together with the answer.
    const onprogress = ({ message = "" }) => {
      seen.push(message);
      writeFileSync(`${workdir}/seen`, "");
    };
    const command = "pwd; until [ -e seen ]; do sleep 0.05; done";
    await expect(mcp.call("sandbox_exec", { command }, { onprogress })).resolves.toMatchObject({ stdout: `${workdir}\n` });
    expect(seen[0]).toMatch(/^running/);
    await expect(mcp.call("sandbox_fs_read", { path: "absent" })).rejects.toThrow("ENOENT");
    await mcp.call("sandbox_process_start", { command: "sleep 1000" });
    expect(daemon.children()).not.toEqual([]);
    // The client gives up, and the daemon hears of it.
    const cancelled = mcp.call("sandbox_exec", { command: "sleep 1000" }, { signal: AbortSignal.timeout(500) });
    await expect(cancelled).rejects.toThrow();
    await daemon.waitForLog(({ procedure, code }) => procedure === "mcp/sandbox_exec" && code === "canceled");
    await mcp[Symbol.asyncDispose]();
    await eventually("the session's processes are gone", () => daemon.children().length === 0);
  });

  it("goes on with an answer whose connection broke, and makes no call twice", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    using proxy = await SwitchedProxy.to(daemon.port);
    await using mcp = await connectStdio(["--url", proxy.url], ENV);
    const { workdir } = await mcp.call("sandbox_open");
    const command = "echo once >> runs; until [ -e go ]; do sleep 0.05; done; echo done";
    let runs = 0;
    const onprogress = () => {
      runs++;
    };
    const running = mcp.call("sandbox_exec", { command }, { onprogress });
    for (const cut of [1, 2]) {
      await eventually(`it has been told something after ${proxy.cuts} cuts`, () => runs >= cut);
      proxy.cut();
    }
    writeFileSync(`${workdir}/go`, "");
    await expect(running).resolves.toMatchObject({ exit_code: 0, stdout: "done\n" });
    expect(readFileSync(`${workdir}/runs`, "utf8")).toBe("once\n");
    await expect(mcp.call("sandbox_exec", { command: "echo more" })).resolves.toMatchObject({ stdout: "more\n" });
  });

  it("introduces its client to a daemon that was started again, and says what is lost", async () => {
    using directory = temporaryDirectory();
    const args = ["--workdir", directory.path, "--shutdown-grace", "0s"];
    const first = await startDaemon({ args });
    using proxy = await SwitchedProxy.to(first.port);
    await using mcp = await connectStdio(["--url", proxy.url], ENV);
    const lost = mcp.call("sandbox_exec", { command: "sleep 1000" }, { onprogress: () => undefined });
    lost.catch(() => undefined);
    await eventually("it runs", () => first.children().length > 0);
    first.child.kill("SIGKILL");
    await first.exited;
    await using second = await startDaemon({ args });
    proxy.target = second.port;
    await expect(mcp.call("sandbox_exec", { command: "echo again" })).resolves.toMatchObject({ stdout: "again\n" });
    await expect(lost).rejects.toThrow(/ended the session|not known/);
    expect(mcp.log).toContain("was started again");
  });

  it("says whether a call may have been made when the connection breaks before any of its answer", async () => {
    // Takes the first request as a daemon would, and hangs up on the next.
    const server = createServer((request, response) => {
      request.resume();
      const isCall = request.headers["mcp-session-id"] !== undefined;
      if (isCall) return request.socket.destroy();
      const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "x", version: "0" } };
      response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "a" });
      return response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const { child, ended } = spawnMcp(["--url", `http://127.0.0.1:${port}`]);
    await ask(child, INITIALIZE);
    const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "sandbox_open", arguments: {} } };
    await expect(ask(child, call)).resolves.toMatchObject({
      id: 2,
      error: { message: expect.stringContaining("is not known (socket hang up)") },
    });
    child.stdin.end();
    expect(await ended).toBe(0);
    server.close();
  });

  it.each([["a wrong token", ENV, { PICOD_ACCESS_TOKEN: "another" }, "refuses the token"]])(
    "ends with 1 and says why for %s",
    async (_what, env, own, message) => {
      await using daemon = await startDaemon({ env });
      const { child, stdout, stderr, ended } = spawnMcp(["--url", daemon.url, "--log-level", "silent"], own);
      child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
      expect(await ended).toBe(1);
      expect(await stderr).toMatch(new RegExp(`^picod: ${daemon.url}/mcp ${message}.*\n$`));
      expect(JSON.parse(await stdout)).toMatchObject({ id: 1, error: { message: expect.stringContaining(message) } });
    },
  );

  it("ends with 1 where no daemon is", async () => {
    const { child, stderr, ended } = spawnMcp(["--url", "http://127.0.0.1:1", "--log-level", "silent"], ENV);
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    expect(await ended).toBe(1);
    expect(await stderr).toMatch(/^picod: cannot reach http:\/\/127.0.0.1:1\/mcp: connect ECONNREFUSED .*\n$/);
  });

  it.each([
    ["no address", ["--url", "sandbox:1"], "invalid value for --url"],
    ["a token in the address", ["--url", "http://me:secret@sandbox"], "PICOD_ACCESS_TOKEN"],
    ["half of a client certificate", ["--url", "https://sandbox", "--cert", "/x.pem"], "--cert and --key go together"],
    ["a file that is not there", ["--url", "https://sandbox", "--ca", "/nowhere.pem"], "/nowhere.pem: no such file"],
    ["a path that is not absolute", ["--url", "https://sandbox", "--ca", "ca.pem"], "expected an absolute path"],
  ])("refuses %s with exit code 2", async (_what, args, message) => {
    const { ended, stderr } = spawnMcp(args, ENV);
    expect(await ended).toBe(2);
    expect(await stderr).toContain(message);
  });

  it("trusts the authority that it is told to, and is known by its certificate", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    const server = makeCertificate(path, "server", { names: "IP:127.0.0.1" });
    const own = makeCertificate(path, "agent");
    const callers = [{ name: "agent", certificate: "cn:agent", scopes: ["process"] }];
    writeFileSync(`${path}/scopes.json`, JSON.stringify({ callers }), { mode: 0o600 });
    const tls = ["--tls-cert", server.certPath, "--tls-key", server.keyPath, "--tls-client-ca", own.certPath];
    const args = [...tls, "--scopes-file", `${path}/scopes.json`, "--workdir", path];
    await using daemon = await startDaemon({ env: {}, args });
    const url = ["--url", `https://127.0.0.1:${daemon.port}`];
    await using mcp = await connectStdio([...url, "--ca", server.certPath, "--cert", own.certPath, "--key", own.keyPath]);
    await expect(mcp.call("sandbox_exec", { command: "echo hello" })).resolves.toMatchObject({ stdout: "hello\n" });
    const stranger = spawnMcp(url);
    stranger.child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    expect(await stranger.ended).toBe(1);
    expect(await stranger.stderr).toContain("certificate");
  });
});
