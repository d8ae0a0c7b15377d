import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.js";
import { isAlive } from "../helpers/processes.js";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { connectMcp } from "./connect.js";
import { exec, type Headers, INITIALIZE, initialize, send } from "./raw.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));
const scopesFile = join(workdir, "scopes.json");
const other = { name: "other", token: "token-of-other", scopes: ["files:read"] };
writeFileSync(scopesFile, JSON.stringify({ callers: [other] }), { mode: 0o600 });
const start = (...args: string[]) => startDaemon({ args: ["--workdir", workdir, "--scopes-file", scopesFile, ...args] });

let daemon: Daemon;
beforeAll(async () => {
  daemon = await start();
});
afterAll(() => daemon[Symbol.asyncDispose]());

describe("a request of /mcp", () => {
  it("that is not the protocol's is told so", async () => {
    await using daemon = await start("--mcp-max-file-size", "1000");
    const known = await initialize(daemon);
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const refused = async (body: unknown, headers: Headers, method = "POST") => {
      const answer = await send(daemon, body, headers, method);
      return [answer.status, ((await answer.json()) as { error: { code: number } }).error.code];
    };
    await expect(refused(list, {})).resolves.toEqual([400, -32000]);
    await expect(refused(list, { "mcp-session-id": "made-up" })).resolves.toEqual([404, -32001]);
    await expect(refused(list, { ...known, "mcp-protocol-version": "1999-01-01" })).resolves.toEqual([400, -32000]);
    await expect(refused(list, { ...known, accept: "application/json" })).resolves.toEqual([406, -32000]);
    await expect(refused(list, { ...known, "content-type": "text/plain" })).resolves.toEqual([400, -32700]);
    await expect(refused("{", known)).resolves.toEqual([400, -32700]);
    await expect(refused({ hello: 1 }, known)).resolves.toEqual([400, -32700]);
    await expect(refused(INITIALIZE, known)).resolves.toEqual([400, -32600]);
    const old = { ...known, "mcp-protocol-version": "2025-03-26" };
    const batch = Array.from({ length: 101 }, (_, id) => ({ ...list, id }));
    await expect(refused(batch, old)).resolves.toEqual([400, -32600]);
    await expect(refused([], old)).resolves.toEqual([400, -32600]);
    await expect(refused([list], { ...known, "mcp-protocol-version": "2025-06-18" })).resolves.toEqual([400, -32600]);
    await expect(refused([list], known)).resolves.toEqual([400, -32600]);
    await expect(refused(exec(1, "x".repeat(2 * 1024 * 1024)), known)).resolves.toEqual([413, -32700]);
    await expect(refused(undefined, {}, "GET")).resolves.toEqual([400, -32000]);
    await expect(refused(undefined, { ...known, accept: "application/json" }, "GET")).resolves.toEqual([406, -32000]);
    const unknown = await (await send(daemon, { jsonrpc: "2.0", id: 5, method: "none" }, known)).text();
    expect(unknown).toContain('"code":-32601');
    for (const [method, params, message] of [
      ["tools/call", {}, "name: expected string, received undefined"],
      ["tools/call", undefined, "expected object, received undefined"],
      ["tools/call", { name: "sandbox_exec", arguments: "echo" }, "arguments: expected record, received string"],
      ["resources/read", { uri: 1 }, "uri: expected string, received number"],
    ]) {
      const invalid = await (await send(daemon, { jsonrpc: "2.0", id: 6, method, params }, known)).text();
      expect(invalid).toContain(`"error":{"code":-32602,"message":"invalid params of ${method}: ${message}"}`);
    }
    const none = await send(daemon, list, { ...known, authorization: "Bearer wrong" });
    expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    await expect(none.json()).resolves.toMatchObject({
      jsonrpc: "2.0",
      error: { message: expect.stringContaining("access token") },
    });
  });

  it("is refused with the session of another caller", async () => {
    const known = await initialize(daemon);
    const answer = await send(daemon, exec(1, "true"), { ...known, authorization: "Bearer token-of-other" });
    expect(answer.status).toBe(404);
    const ended = await send(daemon, undefined, { ...known, authorization: "Bearer token-of-other" }, "DELETE");
    expect(ended.status).toBe(404);
    expect((await send(daemon, undefined, known, "DELETE")).status).toBe(200);
    expect((await send(daemon, exec(1, "true"), known)).status).toBe(404);
  });

  it("of a page is refused, unless its origin is allowed", async () => {
    await using daemon = await start("--mcp-allow-origin", "http://localhost:6274");
    for (const origin of ["http://evil.example", daemon.url, "null"]) {
      const answer = await send(daemon, INITIALIZE, { origin });
      expect(answer.status, origin).toBe(403);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
    const asked = { "access-control-request-method": "POST", "access-control-request-headers": "authorization, mcp-session-id" };
    const strange = await fetch(`${daemon.url}/mcp`, { method: "OPTIONS", headers: { ...asked, origin: "http://evil.example" } });
    expect([strange.status, strange.headers.get("access-control-allow-origin")]).toEqual([204, null]);
    const allowed = await fetch(`${daemon.url}/mcp`, {
      method: "OPTIONS",
      headers: { ...asked, origin: "http://localhost:6274" },
    });
    expect(Object.fromEntries(allowed.headers)).toMatchObject({
      "access-control-allow-origin": "http://localhost:6274",
      "access-control-allow-headers": "authorization, mcp-session-id",
    });
    const answer = await send(daemon, INITIALIZE, { origin: "http://localhost:6274" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:6274");
    expect(answer.headers.get("access-control-expose-headers")).toContain("Mcp-Session-Id");
    await answer.text();
  });

  it("may come over HTTP/2", async () => {
    const session = connectHttp2(daemon.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/mcp",
      authorization: `Bearer ${TOKEN}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    });
    stream.end(JSON.stringify(INITIALIZE));
    let text = "";
    for await (const chunk of stream) text += chunk;
    session.close();
    expect(text).toContain('"serverInfo":{"name":"picod"');
  });
});

describe("a connection that breaks", () => {
  it("is taken up where it was, with what has come meanwhile", async () => {
    const cut = new AbortController();
    let resumedFrom: string | null = null;
    const whileCut: typeof fetch = async (url, init) => {
      const headers = new Headers(init?.headers);
      const isExec = typeof init?.body === "string" && init.body.includes("sandbox_exec");
      if (init?.method === "GET" && headers.has("last-event-id")) {
        resumedFrom = headers.get("last-event-id");
        writeFileSync(join(workdir, "go"), "");
      }
      return fetch(
        url,
        isExec ? { ...init, signal: AbortSignal.any([cut.signal, ...(init.signal ? [init.signal] : [])]) } : init,
      );
    };
    await using mcp = await connectMcp(daemon, { fetch: whileCut });
    const started = join(workdir, "started");
    const running = mcp.call("sandbox_exec", {
      command: `echo begun > ${started}; until [ -e ${workdir}/go ]; do sleep 0.05; done; echo done`,
    });
    await eventually("the command", async () => (await mcp.tryCall("sandbox_fs_read", { path: started })).isError !== true);
    cut.abort();
    await expect(running).resolves.toMatchObject({ exit_code: 0, stdout: "done\n" });
    expect(resumedFrom).not.toBeNull();
  });

  it("and whose stream is taken up after its answer, ends with it", async () => {
    await using daemon = await start();
    const known = await initialize(daemon);
    const cut = new AbortController();
    const common = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      authorization: `Bearer ${TOKEN}`,
    };
    const answer = await fetch(`${daemon.url}/mcp`, {
      method: "POST",
      headers: { ...common, ...known },
      body: JSON.stringify(exec(7, `until [ -e ${workdir}/later ]; do sleep 0.05; done; echo late`)),
      signal: cut.signal,
    });
    const reader = answer.body?.getReader();
    const first = Buffer.from((await reader?.read())?.value ?? []).toString();
    const id = /^id: (\S+)$/m.exec(first)?.[1] ?? "";
    cut.abort();
    await daemon.waitForLog(({ procedure, code }) => procedure === "POST /mcp" && code === "canceled");
    writeFileSync(join(workdir, "later"), "");
    await daemon.waitForLog(({ procedure }) => procedure === "mcp/sandbox_exec");
    const resumed = await send(daemon, undefined, { ...known, "last-event-id": id }, "GET");
    expect(await resumed.text()).toContain('\\"stdout\\":\\"late\\\\n\\"');
    // Nobody else's events are found by their ids, and those that are gone are gone.
    const stranger = await initialize(daemon);
    expect((await send(daemon, undefined, { ...stranger, "last-event-id": id }, "GET")).status).toBe(400);
    expect((await send(daemon, undefined, { ...known, "last-event-id": "none" }, "GET")).status).toBe(400);
  });

  it("ends the command of a client that has nothing to take it up with", async () => {
    await using daemon = await start("--kill-grace", "200ms");
    // Before that version streams did not begin with an id.
    const known = { ...(await initialize(daemon)), "mcp-protocol-version": "2025-03-26" };
    const cut = new AbortController();
    const common = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      authorization: `Bearer ${TOKEN}`,
    };
    const body = JSON.stringify(exec(1, `sleep 64 & echo $! > ${workdir}/old; wait`));
    await fetch(`${daemon.url}/mcp`, { method: "POST", headers: { ...common, ...known }, body, signal: cut.signal });
    await using mcp = await connectMcp(daemon);
    let pid = 0;
    await eventually("the command", async () => {
      pid = Number((await mcp.tryCall("sandbox_fs_read", { path: join(workdir, "old") })).structuredContent?.content);
      return pid > 0;
    });
    cut.abort();
    await daemon.waitForLog(({ procedure, code }) => procedure === "mcp/sandbox_exec" && code === "canceled");
    await eventually("its end", () => !daemon.children().includes(pid) && !isAlive(pid));
  });
});

describe("the stream that no request has asked for", () => {
  it("is one for each client, and ends with the daemon", async () => {
    await using daemon = await start();
    const known = await initialize(daemon);
    const stream = await send(daemon, undefined, known, "GET");
    expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect((await send(daemon, undefined, known, "GET")).status).toBe(409);
    const ended = stream.text().catch(() => "broken off");
    await expect(daemon.stop()).resolves.toBe(0);
    await ended;
  });
});

describe("a daemon", () => {
  it("is left as it was by a client that has gone", async () => {
    await using daemon = await start();
    const before = daemon.descriptors();
    expect((await send(daemon, INITIALIZE, { authorization: "Bearer wrong" })).status).toBe(401);
    await using mcp = await connectMcp(daemon);
    await Promise.all(Array.from({ length: 20 }, (_, index) => mcp.call("sandbox_exec", { command: `echo ${index}` })));
    await mcp.call("sandbox_close");
    await mcp.transport.terminateSession();
    await eventually("no descriptors more than before", () => daemon.descriptors() <= before + 2);
    expect(daemon.children()).toEqual([]);
  });
});
