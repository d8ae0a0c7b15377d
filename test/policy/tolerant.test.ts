import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { askAs } from "../helpers/with-token.js";
import { all } from "../rpc/support/file-calls.js";
import { furnish, policyFor, SECRET, startWithPolicy, traces } from "./support.js";

const text = (told: unknown) =>
  JSON.stringify(told, (_, value) => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString("latin1");
    return typeof value === "bigint" ? `${value}` : value;
  });

describe("what a policy denies in the middle of a call", () => {
  it("is left out of what tells of many files, which goes on", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    linkSync(at("out/secret"), at("in/hard"));
    linkSync(at("out/secret"), at("in/.gitignore"));
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    await using clients = connectTo(daemon.url, { token: "worker" });
    const { filesystem } = clients;
    const found = await all(filesystem.find({ path: at("in"), gitignore: true }));
    expect(text(found)).toContain("in/hard");
    const searched = await all(filesystem.search({ path: at("in"), pattern: "for|inside", regex: true }));
    expect(text(searched)).toContain('"reason":"POLICY_DENIED"');
    expect(text(searched)).not.toContain(SECRET);
    await expect(all(filesystem.readArchive({ path: at("in") }))).rejects.toMatchObject({ code: Code.PermissionDenied });
    const archive = text(await all(filesystem.readArchive({ path: at("in"), skipUnreadable: true })));
    expect(archive).toContain('"reason":"POLICY_DENIED"');
    expect(archive).not.toContain(SECRET);
    const listed = await askAs(daemon, "worker", "/filesystem.Filesystem/ListDir", { path: at("in"), depth: 1 });
    expect([listed.status, listed.body]).toEqual([200, expect.stringContaining("relative")]);
    const plain = await askAs(daemon, "worker", `/v1/files/${encodeURIComponent(at("in"))}`, undefined, "GET");
    expect([plain.status, plain.body]).toEqual([200, expect.stringContaining("deep")]);
    expect(traces(base.path)).toEqual([["directory", "secret"], SECRET]);
  });

  it("ends a watch whose path is led elsewhere, and nothing else", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    symlinkSync("deep", at("in/way"));
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    await using clients = connectTo(daemon.url, { token: "worker" });
    const watching = clients.filesystem
      .watchDirectory({ path: at("in/way"), options: { recursive: true } })
      [Symbol.asyncIterator]();
    await watching.next();
    rmSync(at("in/way"));
    symlinkSync("../out", at("in/way"));
    // It is looked at by its path again.
    mkdirSync(at("in/deep/new"));
    for (let event = await watching.next(); ; event = await watching.next()) {
      expect(text(event)).not.toContain("secret");
      if (event.done || text(event.value).includes("no longer")) break;
    }
    expect((await askAs(daemon, "worker", "/picod.v1.FilesystemService/Stat", { path: at("in/file") })).status).toBe(200);
  });

  it("keeps nobody from dropping an upload whose directories were moved away", async () => {
    using base = temporaryDirectory();
    const at = (name: string) => `${base.path}/${name}`;
    furnish(base.path);
    await using daemon = await startWithPolicy(base.path, policyFor(base.path));
    await using clients = connectTo(daemon.url, { token: "worker" });
    const metadata = { path: at("in/made/for/it"), uploadId: "up", offset: 0n };
    const chunk = { request: { case: "chunk" as const, value: Buffer.from("x") } };
    await clients.filesystem.writeFile(
      (async function* () {
        yield { request: { case: "metadata" as const, value: metadata } };
        yield chunk;
      })(),
    );
    renameSync(at("in/made"), at("out/made"));
    symlinkSync("../out/made", at("in/made"));
    await clients.filesystem.abortUpload({ uploadId: "up" });
    expect((await clients.filesystem.stat({ path: at("in/file") })).entry?.name).toBe("file");
    expect(readFileSync(at("out/secret"), "utf8")).toBe(SECRET);
  });
});
