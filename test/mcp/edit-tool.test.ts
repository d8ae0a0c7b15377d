import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectMcp } from "./connect.js";

describe("sandbox_fs_edit", () => {
  it("replaces a passage and returns the change", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await using mcp = await connectMcp(daemon);
    const { path } = await mcp.call("sandbox_fs_write", { path: "a.txt", content: "one\ntwo\ntwo\n" });
    await expect(mcp.call("sandbox_fs_edit", { path: "a.txt", old_string: "one", new_string: "1" })).resolves.toEqual({
      path,
      replacements: 1,
      size_bytes: 10,
      diff: `--- ${path}\n+++ ${path}\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n two\n`,
      lines_added: 1,
      lines_removed: 1,
    });
    await expect(mcp.failure("sandbox_fs_edit", { path: "a.txt", old_string: "two", new_string: "2" })).resolves.toMatchObject({
      reason: "TEXT_NOT_UNIQUE",
      code: "failed_precondition",
      metadata: { occurrences: "2" },
    });
    const all = { path: "a.txt", old_string: "two", new_string: "2", replace_all: true };
    await expect(mcp.call("sandbox_fs_edit", all)).resolves.toMatchObject({ replacements: 2 });
    expect(readFileSync(String(path), "utf8")).toBe("1\n2\n2\n");
  });

  it("says which limit a file exceeds, and leaves it alone", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path, "--mcp-max-file-size", "10"] });
    await using mcp = await connectMcp(daemon);
    await mcp.call("sandbox_fs_write", { path: "a.txt", content: "0123456789" });
    const longer = { path: "a.txt", old_string: "9", new_string: "90" };
    await expect(mcp.failure("sandbox_fs_edit", longer)).resolves.toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "max_file_size_bytes", value: "10" },
    });
    await expect(mcp.call("sandbox_fs_read", { path: "a.txt" })).resolves.toMatchObject({ content: "0123456789" });
  });
});
