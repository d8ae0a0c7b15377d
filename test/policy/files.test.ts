import { linkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { askAs } from "../helpers/with-token.js";
import { connectMcp } from "../mcp/connect.js";
import { fileRequests, fileRpcs } from "../rpc/support/file-calls.js";
import { auditLines, furnish, policyFor, SECRET, startWithPolicy, traces } from "./support.js";

/** Each leads to what is not granted, or only looks as if it were granted. */
const ATTACKS: Readonly<Record<string, string>> = {
  "its own path": "out/secret",
  "a directory": "out",
  "..": "in/../out/secret",
  ".. after a link": "in/absolute/directory/../secret",
  "a relative link": "in/relative/secret",
  "an absolute link": "in/absolute/secret",
  "a link to what is missing": "in/dangling",
  "what is missing": "out/none",
  "a name that only begins alike": "inside/file",
  "another case": "IN/file",
  "a look-alike": "\u0456n/file",
  "a newline": "in\n/file",
};
const PROC = ["/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../../../../../.."];

const granted = (answer: unknown, title: string) =>
  expect.fail(`${title}: ${JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`);

describe("what a policy does not grant", () => {
  it("is denied in every RPC, and each denial is in the audit log", { timeout: 60_000 }, async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const before = traces(base.path);
    let calls = 0;
    {
      await using daemon = await startWithPolicy(base.path, policyFor(base.path));
      await using clients = connectTo(daemon.url, { token: "worker" });
      const attacks = [
        ...Object.entries(ATTACKS).map(([what, path]) => [what, `${base.path}/${path}`] as const),
        ...PROC.map((path) => [path, `${path}${base.path}/out/secret`] as const),
      ];
      for (const [title, rpc] of Object.entries(fileRpcs(clients, `${base.path}/in`))) {
        for (const [what, path] of attacks) {
          // A last link is itself, which is granted.
          const isLink = what === "a link to what is missing";
          if (isLink && !["stat, links followed", "readFile", "writeFile"].includes(title)) continue;
          calls++;
          const error = await rpc(path).then(
            (answer) => granted(answer, `${title} of ${what}`),
            (reason: unknown) => ConnectError.from(reason),
          );
          expect.soft(error.code, `${title} of ${what}: ${error.message}`).toBe(Code.PermissionDenied);
          expect.soft(error.message, `${title} of ${what}`).toMatch(/may not (read|write): .* \(capability worker\)$/s);
        }
      }
      await daemon.stop();
    }
    expect(traces(base.path)).toEqual(before);
    const denied = auditLines(base.path).filter(({ decision }) => decision === "denied");
    expect(denied).toHaveLength(calls);
    for (const line of denied) {
      expect(line).toMatchObject({
        event: "call",
        caller: "worker",
        capability: "worker",
        code: "permission_denied",
        permission: expect.stringMatching(/^filesystem\.(read|write)$/),
        subject: expect.any(String),
        request_id: expect.any(String),
        duration_ms: expect.any(Number),
      });
    }
  });

  it("is denied in every route and by E2B's and AgentCube's contracts, and each denial is in the audit log", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const before = traces(base.path);
    let calls = 0;
    {
      await using daemon = await startWithPolicy(base.path, policyFor(base.path), ["--workspace", base.path]);
      const agentCube = {
        "GET /api/files": (path: string) =>
          askAs(daemon, "worker", `/api/files?${new URLSearchParams({ path })}`, undefined, "GET"),
        "GET /api/files/{path}": (path: string) =>
          askAs(daemon, "worker", `/api/files/${encodeURIComponent(path).replaceAll(".", "%2E")}`, undefined, "GET"),
        "POST /api/files": (path: string) => askAs(daemon, "worker", "/api/files", { path, content: "bmV3cw==" }),
      };
      for (const [title, request] of Object.entries({ ...fileRequests(daemon, "worker"), ...agentCube })) {
        for (const [what, path] of Object.entries(ATTACKS)) {
          if (what === "a link to what is missing") continue;
          calls++;
          const { status, body } = await request(title in agentCube ? `/${path}` : `${base.path}/${path}`);
          expect.soft(status, `${title} of ${what}: ${body}`).toBe(403);
          expect.soft(body, `${title} of ${what}`).toContain("(capability worker)");
        }
      }
      await daemon.stop();
    }
    expect(traces(base.path)).toEqual(before);
    const denied = auditLines(base.path).filter(({ decision }) => decision === "denied");
    expect(denied).toHaveLength(calls);
  });

  it("is denied to every tool of MCP, and each denial is in the audit log", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    const before = traces(base.path);
    let calls = 0;
    {
      await using daemon = await startWithPolicy(base.path, policyFor(base.path), ["--workdir", `${base.path}/in`]);
      await using mcp = await connectMcp(daemon, { token: "worker" });
      await expect(mcp.call("sandbox_fs_read", { path: `${base.path}/in/file` })).resolves.toMatchObject({ content: "inside" });
      const tools: Readonly<Record<string, object>> = {
        sandbox_fs_read: {},
        sandbox_fs_write: { content: "news" },
        sandbox_fs_list: {},
        sandbox_fs_delete: { recursive: true },
        sandbox_fs_edit: { old_string: "not", new_string: "news" },
        sandbox_fs_search: { pattern: "not" },
      };
      for (const [tool, input] of Object.entries(tools)) {
        for (const [what, path] of Object.entries(ATTACKS)) {
          if (what === "a link to what is missing" && tool === "sandbox_fs_delete") continue;
          calls++;
          const failure = await mcp.failure(tool, { ...input, path: `${base.path}/${path}` });
          expect
            .soft(failure, `${tool} of ${what}`)
            .toMatchObject({ reason: "POLICY_DENIED", metadata: { capability: "worker" } });
        }
      }
      await mcp[Symbol.asyncDispose]();
      await daemon.stop();
    }
    expect(traces(base.path)).toEqual(before);
    const denied = auditLines(base.path).filter(({ decision }) => decision === "denied");
    expect(denied).toHaveLength(calls);
    expect(denied[0]).toMatchObject({ caller: "worker", capability: "worker", procedure: "mcp/sandbox_fs_read" });
  });

  it("is not shown, searched, archived or told of by a watch", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    await using clients = connectTo(daemon.url, { token: "worker" });
    const { filesystem } = clients;
    const told: unknown[] = [];
    const all = async (messages: AsyncIterable<unknown>) => {
      for await (const message of messages) told.push(message);
    };
    const watch = new AbortController();
    const watching = filesystem
      .watchDirectory({ path: base.path, options: { recursive: true } }, { signal: watch.signal })
      [Symbol.asyncIterator]();
    told.push(await watching.next());
    await all(filesystem.listDirectory({ path: base.path, depth: 0 }));
    await all(filesystem.find({ path: base.path }));
    await all(filesystem.search({ path: base.path, pattern: "for" }));
    await all(filesystem.readArchive({ path: base.path }));
    writeFileSync(`${base.path}/out/new-secret`, "x");
    writeFileSync(`${base.path}/in/seen`, "x");
    const event = await watching.next();
    told.push(event);
    watch.abort();
    const text = JSON.stringify(told, (_, value) => {
      if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
      return typeof value === "bigint" ? `${value}` : value;
    });
    expect(text).toContain("in/deep/file");
    expect(text).toContain("in/seen");
    expect(text).not.toContain("secret");
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain("audit.jsonl");
  });

  it("is denied by way of a hard link", async () => {
    using base = temporaryDirectory();
    furnish(base.path);
    linkSync(`${base.path}/out/secret`, `${base.path}/in/hard`);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    for (const [method, body] of [
      ["GET", undefined],
      ["PUT", "x"],
    ] as const) {
      const answer = await askAs(daemon, "worker", `/v1/files/${encodeURIComponent(`${base.path}/in/hard`)}`, body, method);
      expect([answer.status, answer.body]).toEqual([403, expect.stringContaining("it has 2 names")]);
    }
    expect(traces(base.path)).toEqual([["directory", "secret"], SECRET]);
  });
});
