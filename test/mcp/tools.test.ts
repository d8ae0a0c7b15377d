import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { connectMcp } from "./connect.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));

describe("the tools of MCP", () => {
  it("do what their names say", async () => {
    await using daemon = await startDaemon({ args: ["--workdir", workdir] });
    await using mcp = await connectMcp(daemon);
    const { workdir: here } = await mcp.call("sandbox_open");
    await expect(mcp.call("sandbox_exec", { command: "pwd; echo no >&2; exit 3" })).resolves.toMatchObject({
      exit_code: 3,
      stdout: `${here}\n`,
      stderr: "no\n",
      outcome: "exited",
    });
    await expect(mcp.call("sandbox_fs_write", { path: "a/b.txt", content: "hello" })).resolves.toEqual({
      path: `${here}/a/b.txt`,
      size_bytes: 5,
    });
    await expect(mcp.call("sandbox_fs_read", { path: "a/b.txt" })).resolves.toMatchObject({ content: "hello", size_bytes: 5 });
    await expect(mcp.call("sandbox_fs_list", { recursive: true })).resolves.toEqual({
      entries: [
        { name: "a", type: "directory" },
        { name: "a/b.txt", type: "file", size_bytes: 5 },
      ],
      truncated: false,
    });
    await expect(mcp.call("sandbox_fs_delete", { path: "a", recursive: true })).resolves.toMatchObject({ deleted: true });
    await expect(mcp.call("sandbox_fs_delete", { path: "a" })).resolves.toMatchObject({ deleted: false });
    await expect(mcp.call("sandbox_close")).resolves.toMatchObject({ closed: true });
  });
});
