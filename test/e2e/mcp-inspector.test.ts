import { mkdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { inspect, installInspector } from "./inspector.js";

let inspector = "";
beforeAll(async () => {
  inspector = await installInspector();
});

const CALL = ["--method", "tools/call", "--tool-name"];

/** Where its own files and those of the sandbox are. */
function places() {
  const directory = temporaryDirectory();
  const [home, workdir] = [`${directory.path}/home`, `${directory.path}/work`];
  for (const path of [home, workdir]) mkdirSync(path);
  return { home, workdir, [Symbol.dispose]: () => directory[Symbol.dispose]() };
}

describe("the MCP inspector's command line", () => {
  it("finds nothing wrong with the tools, and calls them, over streamable HTTP", async () => {
    using place = places();
    await using daemon = await startDaemon({ args: ["--workdir", place.workdir] });
    const server = ["--header", `Authorization: Bearer ${TOKEN}`, "--server-url", `${daemon.url}/mcp`, "--transport", "http"];
    // Strict: a schema that some client could not use is an error.
    const { tools } = await inspect(inspector, place.home, "--method", "tools/list", "--strict", ...server);
    expect(tools).toHaveLength(14);
    const written = ["--tool-args-json", JSON.stringify({ path: "a.txt", content: "one\n" })];
    await expect(inspect(inspector, place.home, ...CALL, "sandbox_fs_write", ...written, ...server)).resolves.toMatchObject({
      structuredContent: { size_bytes: 4 },
    });
    const failing = inspect(inspector, place.home, ...CALL, "sandbox_fs_read", "--tool-arg", "path=absent", ...server);
    await expect(failing).rejects.toThrow("tool_is_error");
    await expect(inspect(inspector, place.home, "--method", "resources/list", ...server)).resolves.toMatchObject({
      resources: [],
    });
  });

  it("calls the tools of picod mcp on standard streams", async () => {
    using place = places();
    const server = [PICOD, "mcp", "--workdir", place.workdir];
    const { tools } = await inspect(inspector, place.home, "--method", "tools/list", "--strict", ...server);
    expect(tools).toHaveLength(14);
    const exec = [...CALL, "sandbox_exec", "--tool-args-json", JSON.stringify({ command: "echo hello; exit 3" })];
    await expect(inspect(inspector, place.home, ...exec, ...server)).resolves.toMatchObject({
      structuredContent: { exit_code: 3, stdout: "hello\n" },
    });
  });
});
