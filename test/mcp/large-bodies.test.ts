import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { callTool, exec, initialize, send } from "./raw.js";

const AT_ONCE = 4;
const CALLS = 20;
const LARGE = "x".repeat(2 * 1024 * 1024);

describe("large requests", () => {
  it("are taken few at once; the others wait, small ones do not", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    const client = await initialize(daemon);
    const unfinished = Array.from({ length: AT_ONCE }, () => {
      const headers = { ...client, authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
      const half = request(`${daemon.url}/mcp`, { method: "POST", headers: { ...headers, "content-length": 2 * LARGE.length } });
      half.on("error", () => undefined).write(LARGE);
      return half;
    });
    const smallCalls = async () => {
      for (let id = 1; id <= CALLS; id++)
        expect(await (await send(daemon, exec(id, "true"), client)).text()).toContain('"exit_code":0');
    };
    await smallCalls();
    let isAnswered = false;
    const written = send(daemon, callTool(100, "sandbox_fs_write", { path: "large", content: LARGE }), client)
      .then((answer) => answer.text())
      .finally(() => {
        isAnswered = true;
      });
    await smallCalls();
    expect(isAnswered).toBe(false);
    for (const half of unfinished) half.destroy();
    expect(await written).toContain(`"size_bytes":${LARGE.length}`);
  });
});
