import { readFileSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { auditLines, furnish, policyFor, startWithPolicy, traces } from "../policy/support.js";
import { connectMcp } from "./connect.js";

const SHELL = `
[capabilities.worker.permissions.shell]
allowed_commands = ["echo", "cat"]
[capabilities.worker.limits]
timeout_seconds = 7
max_files = 3
max_file_size_bytes = 100
`;

const denied = (permission: unknown) => ({
  code: "permission_denied",
  reason: "POLICY_DENIED",
  metadata: expect.objectContaining({ capability: "worker", permission }),
});

describe("a tool of MCP, under a policy,", () => {
  it("touches what is granted and nothing else", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    furnish(path);
    const before = traces(path);
    const daemon = await startWithPolicy(path, policyFor(path), ["--workdir", `${path}/in`]);
    const mcp = await connectMcp(daemon, { token: "worker" });
    const names = (await mcp.client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain("sandbox_fs_write");
    expect(names).not.toContain("sandbox_exec");
    await expect(mcp.failure("sandbox_exec", { command: "true" })).resolves.toMatchObject(denied("shell"));
    await mcp.call("sandbox_fs_write", { path: "a", content: "mine" });
    await expect(mcp.call("sandbox_fs_read", { path: "a" })).resolves.toMatchObject({ content: "mine" });
    await expect(mcp.call("sandbox_fs_read", { path: `${path}/in/link` })).resolves.toMatchObject({ content: "inside" });
    for (const secret of ["out/secret", "in/../out/secret", "in/relative/secret", "in/absolute/secret"]) {
      const read = mcp.failure("sandbox_fs_read", { path: `${path}/${secret}` });
      await expect(read, secret).resolves.toMatchObject(denied("filesystem.read"));
      const write = mcp.failure("sandbox_fs_write", { path: `${path}/${secret}`, content: "" });
      await expect(write, secret).resolves.toMatchObject(denied(expect.stringContaining("filesystem.")));
      const remove = mcp.failure("sandbox_fs_delete", { path: `${path}/${secret}` });
      await expect(remove, secret).resolves.toMatchObject(denied(expect.stringContaining("filesystem.")));
    }
    await expect(mcp.failure("sandbox_fs_write", { path: `${path}/in/dangling`, content: "" })).resolves.toMatchObject(
      denied(expect.stringContaining("filesystem.")),
    );
    await expect(mcp.failure("sandbox_fs_list", { path: `${path}/out` })).resolves.toMatchObject(denied("filesystem.read"));
    await expect(mcp.failure("sandbox_fs_read", { path: "/etc/hostname" })).resolves.toMatchObject(denied("filesystem.read"));
    expect(traces(path)).toEqual(before);
    await mcp[Symbol.asyncDispose]();
    await daemon[Symbol.asyncDispose]();
    const lines = auditLines(path).filter(({ procedure }) => procedure === "mcp/sandbox_fs_read");
    expect(lines).toContainEqual(
      expect.objectContaining({
        decision: "denied",
        capability: "worker",
        permission: "filesystem.read",
        code: "permission_denied",
      }),
    );
    expect(lines).toContainEqual(expect.objectContaining({ decision: "allowed", capability: "worker", code: "ok" }));
  });

  it("runs the commands that are granted, within the limits of the capability", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    furnish(path);
    await using daemon = await startWithPolicy(path, policyFor(path, SHELL), ["--workdir", `${path}/in`]);
    await using mcp = await connectMcp(daemon, { token: "worker" });
    await expect(mcp.call("sandbox_exec", { command: "echo granted > b && cat b" })).resolves.toMatchObject({
      exit_code: 0,
      stdout: "granted\n",
    });
    await expect(mcp.failure("sandbox_exec", { command: "id" })).resolves.toMatchObject(denied("shell.allowed_commands"));
    const out = await mcp.call("sandbox_exec", { command: `cat ${path}/out/secret` });
    expect(out).toMatchObject({ stdout: "", exit_code: 1 });
    await expect(mcp.failure("sandbox_exec", { command: "echo", timeout_seconds: 8 })).resolves.toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "timeout_seconds", value: "7" },
    });
    await expect(mcp.failure("sandbox_fs_write", { path: "c", content: "x".repeat(101) })).resolves.toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "max_file_size_bytes", value: "100" },
    });
    for (const name of ["c", "d", "e"]) await mcp.call("sandbox_fs_write", { path: name, content: "" });
    await expect(mcp.failure("sandbox_fs_write", { path: "f", content: "" })).resolves.toMatchObject({
      metadata: { limit: "max_files", value: "3" },
    });
  });

  it("is for nobody whom the policy grants nothing", async () => {
    using directory = temporaryDirectory();
    const { path } = directory;
    furnish(path);
    await using daemon = await startWithPolicy(path, policyFor(path), ["--workdir", `${path}/in`]);
    await expect(connectMcp(daemon, { token: "without" })).rejects.toThrow();
    await using mcp = await connectMcp(daemon, { token: "nothing" });
    expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual(["sandbox_open", "sandbox_close"]);
    await expect(mcp.failure("sandbox_open")).resolves.toMatchObject({ reason: "POLICY_DENIED" });
    await expect(mcp.failure("sandbox_fs_read", { path: `${path}/in/file` })).resolves.toMatchObject({ reason: "POLICY_DENIED" });
    await expect(mcp.failure("sandbox_exec", { command: "true" })).resolves.toMatchObject({ reason: "POLICY_DENIED" });
    expect(readFileSync(`${path}/in/file`, "utf8")).toBe("inside");
    rmSync(`${path}/in/file`);
  });
});
