import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { callTool, cancelled, type Headers, initialize, send } from "./raw.js";

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
});
