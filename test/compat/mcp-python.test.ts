import { describe, expect, it } from "vitest";
import { PICOD, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { PYTHON_CLIENT_MS, runPythonClient } from "./python-client.js";

describe("the Python SDK of MCP", () => {
  it("uses every tool of a daemon, over streamable HTTP and through picod mcp --url", { timeout: PYTHON_CLIENT_MS }, async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await runPythonClient("mcp_client.py", "http", `${daemon.url}/mcp`, TOKEN);
    await runPythonClient("mcp_client.py", "stdio", JSON.stringify([PICOD, "mcp", "--url", daemon.url]), TOKEN);
    expect(daemon.children()).toEqual([]);
  });

  it("uses every tool of this machine through picod mcp", { timeout: PYTHON_CLIENT_MS }, async () => {
    using directory = temporaryDirectory();
    await runPythonClient("mcp_client.py", "stdio", JSON.stringify([PICOD, "mcp", "--workdir", directory.path]), "");
  });
});
