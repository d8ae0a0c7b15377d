import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { callTool, cancelled, exec, type Headers, initialize, send } from "./raw.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));

let daemon: Daemon;
let client: Headers;
beforeEach(async () => {
  daemon = await startDaemon({ args: ["--workdir", workdir, "--mcp-max-file-size", String(64 * 1024 * 1024)] });
  client = await initialize(daemon);
});
afterEach(() => daemon[Symbol.asyncDispose]());

const cancel = async (id: number) => expect((await send(daemon, cancelled(id), client)).status).toBe(202);

describe("a request that is cancelled", () => {
  it("gives back the room of a large answer while its connection is open", async () => {
    const path = join(workdir, "large");
    writeFileSync(path, "");
    truncateSync(path, 64 * 1024 * 1024);
    const left: Promise<unknown>[] = [];
    for (const id of [1, 2, 3]) {
      const answer = await send(daemon, callTool(id, "sandbox_fs_read", { path, encoding: "base64" }), client);
      await cancel(id);
      left.push(answer.text().catch(() => undefined));
    }
    const answer = await send(daemon, callTool(4, "sandbox_fs_read", { path, limit: 2 * 1024 * 1024 }), client);
    expect(await answer.text()).toContain('"next_offset":2097152');
  });

  it.each(["2025-11-25", "2025-06-18"])("has its stream ended without an answer, as of version %s", async (version) => {
    const headers = { ...client, "mcp-protocol-version": version };
    const running = await send(daemon, exec(1, "sleep 65"), headers);
    await cancel(1);
    expect(await running.text()).not.toContain("data: {");
    await daemon.waitForLog(({ procedure, code }) => procedure === "mcp/sandbox_exec" && code === "canceled");
    // Its id may be used again.
    expect(await (await send(daemon, exec(1, "echo again"), headers)).text()).toContain("again");
  });

  it("leaves the others of its batch, which is ended with their last answer", async () => {
    const headers = { ...client, "mcp-protocol-version": "2025-03-26" };
    const go = join(workdir, "go");
    const running = await send(
      daemon,
      [exec(1, "sleep 65"), exec(2, `until [ -e ${go} ]; do sleep 0.05; done; echo two`)],
      headers,
    );
    await cancel(1);
    writeFileSync(go, "");
    const text = await running.text();
    expect(text).toContain("two");
    expect(text).not.toContain('"id":1');
  });

  it("is told to a client that takes up its stream", async () => {
    const cut = new AbortController();
    const running = await send(daemon, exec(0, "sleep 65"), client, "POST", cut.signal);
    const first = Buffer.from((await running.body?.getReader().read())?.value ?? []).toString();
    cut.abort();
    await daemon.waitForLog(({ procedure, code }) => procedure === "POST /mcp" && code === "canceled");
    await cancel(0);
    await daemon.waitForLog(({ procedure, code }) => procedure === "mcp/sandbox_exec" && code === "canceled");
    const id = /^id: (\S+)$/m.exec(first)?.[1] ?? "";
    const resumed = await send(daemon, undefined, { ...client, "last-event-id": id }, "GET");
    expect(await resumed.text()).toContain("was cancelled");
  });
});

describe("an id", () => {
  it("that a request in progress has is refused to another", async () => {
    const go = join(workdir, "go-on");
    const running = await send(daemon, exec(7, `until [ -e ${go} ]; do sleep 0.05; done; echo first`), client);
    const refused = await send(daemon, exec(7, "echo second"), client);
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { jsonrpc: "2.0", error: { code: -32600, message: "the id 7 is that of a request in progress" }, id: null },
    ]);
    const batch = [exec(8, "true"), exec(8, "true")];
    expect((await send(daemon, batch, { ...client, "mcp-protocol-version": "2025-03-26" })).status).toBe(400);
    writeFileSync(go, "");
    expect(await running.text()).toContain("first");
    expect(await (await send(daemon, exec(7, "echo third"), client)).text()).toContain("third");
  });
});
