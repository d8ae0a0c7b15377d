import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectStdio, spawnMcp } from "./stdio-client.js";

const CAPABILITY = (granted: string) => `daemon_token = "local"
[capabilities.local.permissions.filesystem]
read_paths = ["${granted}/**"]
write_paths = ["${granted}/writable/**"]
[capabilities.local.permissions.shell]
allowed_commands = ["cat", "mkdir", "sleep"]
working_directory = "${granted}"
[capabilities.local.permissions.network]
allowed_domains = ["*"]
`;

describe("picod mcp with a policy", () => {
  it("holds editing, searching and background processes to what it grants", async () => {
    using directory = temporaryDirectory();
    using elsewhere = temporaryDirectory();
    const { path } = directory;
    writeFileSync(`${path}/policy.toml`, CAPABILITY(path), { mode: 0o600 });
    writeFileSync(`${path}/read-only`, "one\n");
    writeFileSync(`${elsewhere.path}/canary`, "one\n");
    const sessions = ["--session-dir", `${path}/writable`];
    await using mcp = await connectStdio(["--policy", `${path}/policy.toml`, "--workdir", path, ...sessions]);
    const denied = (name: string, args: object) => expect(mcp.call(name, args)).rejects.toThrow(/^POLICY_DENIED: /);
    const edit = { old_string: "one", new_string: "two" };
    await mcp.call("sandbox_fs_write", { path: "mine", content: "one\n" });
    await expect(mcp.call("sandbox_fs_edit", { path: "mine", ...edit })).resolves.toMatchObject({ replacements: 1 });
    await denied("sandbox_fs_edit", { path: `${path}/read-only`, ...edit });
    await denied("sandbox_fs_edit", { path: `${elsewhere.path}/canary`, ...edit });
    await denied("sandbox_fs_search", { path: elsewhere.path, pattern: "one" });
    await denied("sandbox_fs_search", { path: elsewhere.path });
    await expect(mcp.call("sandbox_fs_search", { path, pattern: "one" })).resolves.toMatchObject({
      matches: [{ path: `${path}/read-only` }],
    });
    await denied("sandbox_process_start", { command: "sleep 1000 & rm -rf /tmp/nothing" });
    const { process_id: id } = await mcp.call("sandbox_process_start", { command: `cat ${elsewhere.path}/canary` });
    const output = { process_id: id, wait_seconds: 20 };
    let seen = await mcp.call("sandbox_process_output", output);
    while (seen.status !== "ended") {
      const { total_bytes: read } = seen.stderr as { total_bytes: number };
      seen = await mcp.call("sandbox_process_output", { ...output, stderr_offset: read });
    }
    // The kernel has the last word.
    expect(seen).toMatchObject({ exit_code: 1, stdout: { content: "" } });
    expect([`${path}/read-only`, `${elsewhere.path}/canary`].map((file) => readFileSync(file, "utf8"))).toEqual([
      "one\n",
      "one\n",
    ]);
  });

  it("does not start when it grants nothing to whoever starts it", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    writeFileSync(`${path}/policy.toml`, "[capabilities.other]\n", { mode: 0o600 });
    const { ended, stderr } = spawnMcp(["--policy", `${path}/policy.toml`, "--workdir", path]);
    expect(await ended).toBe(2);
    expect(await stderr).toContain("daemon_token");
    expect(existsSync(`${path}/.sandbox-sessions`)).toBe(false);
  });
});
