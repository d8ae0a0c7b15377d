import { execFileSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { converse } from "../rpc/support/processes.js";

describe("a terminal", () => {
  beforeAll(() => {
    const install =
      "command -v vim && command -v top || { apt-get update && apt-get install -y --no-install-recommends vim procps; }";
    execFileSync("sh", ["-c", install], { stdio: "ignore" });
  }, 120_000);

  it("shows programs that draw", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const top = await converse(clients, { command: "top" }, [["load average", "q"]]);
    expect(top).toContain("\x1b[");
    const vim = await converse(clients, { command: "vim -u NONE -i NONE -n" }, [
      ["~", "ihello"],
      ["hello", "\x1b:q!\r"],
    ]);
    expect(vim).toContain("\x1b[?1049h");
  });
});
