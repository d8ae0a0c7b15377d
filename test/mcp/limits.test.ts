import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { connectMcp } from "./connect.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));
const start = (...args: string[]) => startDaemon({ args: ["--workdir", workdir, ...args] });

const limit = (name: string, value: number) => ({
  code: "resource_exhausted",
  reason: "LIMIT_EXCEEDED",
  message: expect.stringContaining(`the limit ${name} is ${value}`),
  metadata: { limit: name, value: String(value) },
});
const blockedBy = (value: unknown) => ({
  code: "permission_denied",
  reason: "PATH_BLOCKED",
  metadata: expect.objectContaining({ limit: "blocked_paths", value }),
});

describe("a limit", () => {
  it("of a file's size, of files and of time is an error that names it", async () => {
    await using daemon = await start("--mcp-max-file-size", "1000", "--mcp-max-files", "2", "--mcp-timeout", "5s");
    await using mcp = await connectMcp(daemon);
    const write = (path: string, content: string, encoding = "text") =>
      mcp.failure("sandbox_fs_write", { path, content, encoding });
    await expect(write("a", "x".repeat(1000))).resolves.toBeUndefined();
    await expect(write("a", "x".repeat(1001))).resolves.toMatchObject(limit("max_file_size_bytes", 1000));
    await expect(write("a", "é".repeat(501))).resolves.toMatchObject(limit("max_file_size_bytes", 1000));
    await expect(write("a", Buffer.alloc(1001).toString("base64"), "base64")).resolves.toMatchObject(
      limit("max_file_size_bytes", 1000),
    );
    // What is replaced is not made, and what failed was not made either.
    await expect(write("a", "again")).resolves.toBeUndefined();
    await expect(write("a/below-a-file", "")).resolves.toMatchObject({ reason: "ENOTDIR" });
    await expect(write("b", "")).resolves.toBeUndefined();
    await expect(write("c", "")).resolves.toMatchObject(limit("max_files", 2));
    await expect(mcp.failure("sandbox_exec", { command: "true", timeout_seconds: 5.5 })).resolves.toMatchObject(
      limit("timeout_seconds", 5),
    );
    await mcp.call("sandbox_exec", { command: "head -c 1001 /dev/zero > large" });
    await expect(mcp.failure("sandbox_fs_read", { path: "large" })).resolves.toMatchObject(limit("max_file_size_bytes", 1000));
    await expect(mcp.failure("sandbox_fs_read", { path: "large", limit: 1001 })).resolves.toMatchObject(
      limit("max_file_size_bytes", 1000),
    );
    await expect(mcp.call("sandbox_fs_read", { path: "large", offset: 500 })).resolves.toMatchObject({ size_bytes: 1001 });
  });
});

describe("a blocked path", () => {
  it("is refused however it is called", async () => {
    const secret = join(workdir, "token");
    writeFileSync(secret, `${TOKEN}\n`, { mode: 0o600 });
    await using daemon = await startDaemon({ args: ["--workdir", workdir, "--access-token-file", secret], env: {} });
    await using mcp = await connectMcp(daemon);
    const { workdir: here } = await mcp.call("sandbox_open");
    const read = (path: string) => mcp.failure("sandbox_fs_read", { path });
    await expect(read("/etc/passwd")).resolves.toMatchObject(blockedBy("/etc/passwd"));
    await expect(read("/etc/../etc//shadow")).resolves.toMatchObject(blockedBy("/etc/shadow"));
    await expect(read("/proc/self/environ")).resolves.toMatchObject(blockedBy("/proc/*/environ"));
    await expect(read(`/proc/${daemon.pid}/mem`)).resolves.toMatchObject(blockedBy("/proc/*/mem"));
    await expect(read(`/proc/${daemon.pid}/task/${daemon.pid}/environ`)).resolves.toMatchObject(
      blockedBy("/proc/*/task/*/environ"),
    );
    await expect(read("/root/.profile")).resolves.toMatchObject(blockedBy("/root"));
    await expect(read(secret)).resolves.toMatchObject(blockedBy(expect.stringContaining("token")));
    await expect(read("/proc/self/root/etc/passwd")).resolves.toMatchObject({
      code: expect.stringMatching(/permission_denied|precondition/),
    });
    await expect(mcp.failure("sandbox_fs_write", { path: "/etc/passwd", content: "" })).resolves.toMatchObject(
      blockedBy("/etc/passwd"),
    );
    await expect(mcp.failure("sandbox_fs_delete", { path: "/root", recursive: true })).resolves.toMatchObject(blockedBy("/root"));
    await expect(mcp.failure("sandbox_fs_list", { path: "/root" })).resolves.toMatchObject(blockedBy("/root"));
    symlinkSync("/etc/passwd", `${here}/link`);
    linkSync(secret, `${here}/other-name`);
    await expect(read(`${here}/link`)).resolves.toMatchObject(blockedBy("/etc/passwd"));
    await expect(read(`${here}/other-name`)).resolves.toMatchObject({ reason: "PATH_BLOCKED" });
    // The kernel keeps a relative path where it is, links included.
    await expect(read("link")).resolves.toMatchObject({ code: "permission_denied" });
    await expect(read("../token")).resolves.toMatchObject({ reason: "OUTSIDE_ROOT" });
    await expect(read("a/../../../../etc/hostname")).resolves.toMatchObject({ reason: "OUTSIDE_ROOT" });
    await expect(mcp.failure("sandbox_exec", { command: "true", workdir: ".." })).resolves.toMatchObject({
      reason: "OUTSIDE_ROOT",
    });
    // A file with several names is like any other.
    writeFileSync(`${here}/one`, "1");
    linkSync(`${here}/one`, `${here}/two`);
    await expect(mcp.call("sandbox_fs_read", { path: "two" })).resolves.toMatchObject({ content: "1" });
    await expect(mcp.call("sandbox_fs_read", { path: "/etc/hostname" })).resolves.toMatchObject({ path: "/etc/hostname" });
  });

  it("may be another one, and does not keep a session out of its own directory", async () => {
    await using daemon = await start("--mcp-blocked-paths", "/etc/hostname", "--mcp-blocked-paths", `${workdir}/**`);
    await using mcp = await connectMcp(daemon);
    await expect(mcp.failure("sandbox_fs_read", { path: "/etc/hostname" })).resolves.toMatchObject(blockedBy("/etc/hostname"));
    await expect(mcp.call("sandbox_fs_read", { path: "/etc/passwd" })).resolves.toMatchObject({ path: "/etc/passwd" });
    const { path } = await mcp.call("sandbox_fs_write", { path: "d/a", content: "mine" });
    await expect(mcp.call("sandbox_fs_read", { path })).resolves.toMatchObject({ content: "mine" });
    await expect(mcp.failure("sandbox_fs_write", { path: `${workdir}/b`, content: "" })).resolves.toMatchObject(
      blockedBy(`${workdir}/**`),
    );
  });
});
