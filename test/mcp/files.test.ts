import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Daemon, startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { connectMcp } from "./connect.js";

const workdir = mkdtempSync(join(tmpdir(), "picod-mcp-"));
afterAll(() => rmSync(workdir, { recursive: true }));
const start = () => startDaemon({ args: ["--workdir", workdir] });

let daemon: Daemon;
beforeAll(async () => {
  daemon = await start();
});
afterAll(() => daemon[Symbol.asyncDispose]());

describe("a file", () => {
  it("is written and read as it is, empty, binary or as large as may be", async () => {
    await using mcp = await connectMcp(daemon);
    for (const content of ["", "\u0000", 'a\r\nb\\"\u2028😀', "\u001b[31m", "x".repeat(1000)]) {
      const { path } = await mcp.call("sandbox_fs_write", { path: "text", content });
      expect(readFileSync(String(path), "utf8")).toBe(content);
      await expect(mcp.call("sandbox_fs_read", { path: "text" })).resolves.toEqual({
        path,
        content,
        size_bytes: Buffer.byteLength(content),
      });
    }
    for (const bytes of [Buffer.alloc(0), Buffer.from([0xff]), randomBytes(10 * 1024 * 1024)]) {
      const content = bytes.toString("base64");
      const { path, size_bytes: size } = await mcp.call("sandbox_fs_write", { path: "binary", content, encoding: "base64" });
      expect(size).toBe(bytes.length);
      expect(readFileSync(String(path)).equals(bytes)).toBe(true);
      const read = await mcp.call("sandbox_fs_read", { path: "binary", encoding: "base64" });
      expect(Buffer.from(String(read.content), "base64").equals(bytes)).toBe(true);
    }
    await expect(mcp.failure("sandbox_fs_read", { path: "binary" })).resolves.toMatchObject({
      reason: "NOT_TEXT",
      message: "cannot read binary as text: it is not UTF-8; ask for it with encoding base64",
    });
    for (const content of ["a", "a===", "ab c", "é"]) {
      await expect(mcp.failure("sandbox_fs_write", { path: "b", content, encoding: "base64" })).resolves.toMatchObject({
        metadata: { field: "content" },
      });
    }
    await expect(mcp.failure("sandbox_fs_read", { path: "b" })).resolves.toMatchObject({ reason: "ENOENT" });
    await expect(mcp.failure("sandbox_fs_write", { path: "b", content: "", encoding: "latin1" })).resolves.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    await expect(mcp.failure("sandbox_fs_write", { path: "b", content: "", mode: 1 })).resolves.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    await expect(mcp.failure("sandbox_fs_read", { path: "" })).resolves.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await expect(mcp.failure("sandbox_fs_read", { path: "a\u0000b" })).resolves.toMatchObject({ reason: "INVALID_PATH" });
    await expect(mcp.failure("sandbox_fs_read", { path: "." })).resolves.toMatchObject({ reason: "NOT_A_REGULAR_FILE" });
  });

  it("that is large is read by few at once, and in a batch all the same", async () => {
    await using mcp = await connectMcp(daemon);
    const content = Buffer.alloc(2 * 1024 * 1024, "large").toString("utf8");
    await mcp.call("sandbox_fs_write", { path: "large", content });
    const read = () => mcp.call("sandbox_fs_read", { path: "large" }).then((result) => result.content === content);
    const cut = new AbortController();
    const given = mcp.call("sandbox_fs_read", { path: "large" }, { signal: cut.signal });
    cut.abort();
    await expect(given).rejects.toThrow();
    expect(await Promise.all(Array.from({ length: 8 }, read))).toEqual(Array.from({ length: 8 }, () => true));
    const calls = Array.from({ length: 5 }, (_, index) => ({
      jsonrpc: "2.0",
      id: `batch-${index}`,
      method: "tools/call",
      params: { name: "sandbox_fs_read", arguments: { path: "large" } },
    }));
    const answer = await fetch(`${daemon.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${TOKEN}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-session-id": mcp.transport.sessionId ?? "",
      },
      body: JSON.stringify(calls),
    });
    expect((await answer.text()).match(/"id":"batch-\d"/g)?.length).toBe(5);
  });

  it("is read in parts that cut no character", async () => {
    await using mcp = await connectMcp(daemon);
    const whole = "aé€😀".repeat(20);
    await mcp.call("sandbox_fs_write", { path: "parts", content: whole });
    let [text, offset] = ["", 0 as number | undefined];
    for (let limit = 4; offset !== undefined; limit = (limit % 7) + 4) {
      const part = await mcp.call("sandbox_fs_read", { path: "parts", offset, limit });
      text += part.content;
      expect(part.size_bytes).toBe(Buffer.byteLength(whole));
      offset = part.next_offset as number | undefined;
    }
    expect(text).toBe(whole);
    await expect(mcp.failure("sandbox_fs_read", { path: "parts", offset: 1000 })).resolves.toMatchObject({
      reason: "OFFSET_BEYOND_END",
      code: "out_of_range",
    });
    await expect(mcp.failure("sandbox_fs_read", { path: "parts", offset: 2 })).resolves.toMatchObject({ reason: "NOT_TEXT" });
    await expect(mcp.call("sandbox_fs_read", { path: "/proc/self/status" })).resolves.toMatchObject({
      content: expect.stringContaining("Name:"),
    });
  });
});

describe("what agents get wrong", () => {
  it("is named, with what is right", async () => {
    await using mcp = await connectMcp(daemon);
    const message = async (tool: string, input: object) => ((await mcp.failure(tool, input)) as { message: string }).message;
    await expect(message("sandbox_fs_read", { path: "x", encoding: "utf8" })).resolves.toBe(
      "invalid arguments of sandbox_fs_read: encoding must be equal to one of the allowed values: text, base64",
    );
    await expect(message("sandbox_exec", { command: "true", timeout: 3 })).resolves.toBe(
      'invalid arguments of sandbox_exec: they must NOT have additional properties: "timeout"',
    );
    await expect(message("sandbox_fs_read", {})).resolves.toBe(
      "invalid arguments of sandbox_fs_read: they must have required property 'path'",
    );
    writeFileSync(`${workdir}/umlaut`, "über");
    await expect(message("sandbox_fs_read", { path: `${workdir}/umlaut`, offset: 1 })).resolves.toMatch(/inside a character/);
  });

  it("is no empty working directory, which is the session's", async () => {
    await using mcp = await connectMcp(daemon);
    const { workdir: own } = await mcp.call("sandbox_open");
    const command = "pwd";
    await expect(mcp.call("sandbox_exec", { command, workdir: "" })).resolves.toMatchObject({ stdout: `${own}\n` });
  });

  it("goes on behind a part of a file that does not say how long it is", async () => {
    await using mcp = await connectMcp(daemon);
    const whole = readFileSync("/proc/version", "utf8");
    const part = await mcp.call("sandbox_fs_read", { path: "/proc/version", limit: 20 });
    expect(part).toMatchObject({ content: whole.slice(0, 20), next_offset: 20 });
    const rest = await mcp.call("sandbox_fs_read", { path: "/proc/version", offset: 20 });
    expect([rest.content, rest.next_offset]).toEqual([whole.slice(20), undefined]);
  });
});

describe("a listing", () => {
  it("is bounded, and says so", async () => {
    await using mcp = await connectMcp(daemon);
    const many = join(workdir, "many");
    mkdirSync(join(many, "z"), { recursive: true });
    for (let number = 0; number < 1000; number++) writeFileSync(join(many, `f${String(number).padStart(4, "0")}`), "");
    const listed = await mcp.call("sandbox_fs_list", { path: many });
    expect(listed).toMatchObject({ truncated: true });
    expect((listed.entries as object[]).length).toBe(1000);
    rmSync(join(many, "f0000"));
    await expect(mcp.call("sandbox_fs_list", { path: many })).resolves.toMatchObject({ truncated: false });
    symlinkSync("nowhere", join(many, "z/link"));
    const { entries } = await mcp.call("sandbox_fs_list", { path: join(many, "z"), recursive: true });
    expect(entries).toEqual([{ name: "link", type: "symlink", target: "nowhere" }]);
    await expect(mcp.failure("sandbox_fs_list", { path: join(many, "f0001") })).resolves.toMatchObject({ reason: "ENOTDIR" });
    await expect(mcp.failure("sandbox_fs_delete", { path: many })).resolves.toMatchObject({ reason: "ENOTEMPTY" });
    await expect(mcp.call("sandbox_fs_delete", { path: many, recursive: true })).resolves.toEqual({ deleted: true, path: many });
  });
});
