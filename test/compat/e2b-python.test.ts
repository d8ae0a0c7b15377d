import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { PYTHON_CLIENT_MS, runPythonClient } from "./python-client.js";

describe("E2B's Python clients", () => {
  it.each([
    { what: "commands and terminals", program: "e2b_process.py", user: "root" },
    { what: "files", program: "e2b_files.py", user: "nobody" },
  ])("are served: $what", { timeout: PYTHON_CLIENT_MS }, async ({ program, user }) => {
    using home = temporaryDirectory();
    const args = ["--insecure-no-auth", "--envd-user", user, "--env", `HOME=${home.path}`];
    await using daemon = await startDaemon({ args, env: {} });
    await runPythonClient(program, daemon.url, home.path);
  });

  it("are served with a token: signed addresses and git", { timeout: PYTHON_CLIENT_MS }, async () => {
    using home = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--envd-user", "root", "--env", `HOME=${home.path}`] });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const body = JSON.stringify({ accessToken: "theirs" });
    expect((await fetch(`${daemon.url}/init`, { method: "POST", headers, body })).status).toBe(204);
    await runPythonClient("e2b_secured.py", daemon.url, home.path, "theirs");
  });
});
