import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { createClient, FileChangeKind, MoveMode } from "./built-client.js";
import { SwitchedProxy } from "./switched-proxy.js";

describe("results of the TypeScript client", () => {
  it("come once, with the summary at the end, although the connection is cut", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const names = Array.from({ length: 4000 }, (_, index) => `${index % 3 === 0 ? "é" : "f"}-${index}${"x".repeat(150)}`);
    for (const name of names) writeFileSync(`${directory.path}/${name}`, "some text\nother text\n");
    const expected = names
      .map((name) => `${directory.path}/${name}`)
      .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const kinds = [
      client.list(directory.path),
      client.find(directory.path),
      client.search(directory.path, "other", { maxMatches: 9999n }),
    ];
    for (const results of kinds) {
      const cuts = proxy.cuts;
      const paths: string[] = [];
      for await (const { path } of results) {
        if (paths.push(path) % 1000 === 500 && proxy.cuts < cuts + 3) proxy.cut();
        expect(results.summary).toBeUndefined();
      }
      expect(paths).toEqual(expected);
      expect(proxy.cuts).toBe(cuts + 3);
    }
    expect(kinds.map(({ summary }) => summary)).toMatchObject([
      { unreadable: [] },
      { matched: 4000n, unreadableCount: 0n },
      { matchedLines: 4000n, searchedFiles: 4000n },
    ]);
  });

  it("can be left, and say what is wrong", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    const results = client.list("/usr", { depth: 0 });
    for await (const entry of results) if (entry.path.length > 20) break;
    expect(results.summary).toBeUndefined();
    const missing = client.find("/no/such/place")[Symbol.asyncIterator]();
    await expect(missing.next()).rejects.toMatchObject({ code: Code.NotFound });
    const cancelled = client.list("/usr", { signal: AbortSignal.abort() })[Symbol.asyncIterator]();
    await expect(cancelled.next()).rejects.toMatchObject({ code: Code.Canceled });
  });
});

describe("a watch of the TypeScript client", () => {
  it("goes on after a broken connection, says that changes may be lost, and ends with the directory", async () => {
    await using daemon = await startDaemon();
    using proxy = await SwitchedProxy.to(daemon.port);
    using client = createClient({ url: proxy.url, token: TOKEN });
    using directory = temporaryDirectory();
    const path = `${directory.path}/watched`;
    mkdirSync(path);
    const seen: unknown[] = [];
    for await (const event of client.watch(path, { kinds: [FileChangeKind.CREATED] })) {
      seen.push("change" in event ? event.change.path : event);
      if (seen.length === 1) writeFileSync(`${path}/a`, "");
      if (seen.length === 2) proxy.cut();
      if (seen.length === 3) writeFileSync(`${path}/b`, "");
      if (seen.length === 4) rmSync(path, { recursive: true });
    }
    expect(seen).toEqual([{ ready: true }, `${path}/a`, { lost: true }, `${path}/b`]);
  });

  it("is cancelled by its signal", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    const leave = new AbortController();
    const watching = async () => {
      for await (const event of client.watch("/tmp", { signal: leave.signal })) if ("ready" in event) leave.abort();
    };
    await expect(watching()).rejects.toMatchObject({ code: Code.Canceled });
  });
});

describe("the simple calls of the TypeScript client", () => {
  it("write, read, copy, move, remove and sign", async () => {
    await using daemon = await startDaemon();
    using client = createClient({ url: daemon.url, token: TOKEN });
    using directory = temporaryDirectory();
    const [a, b, c] = ["a", "b", "c"].map((name) => `${directory.path}/sub/${name}`) as [string, string, string];
    const text = "ü".repeat(1_000_000);
    expect(await client.makeDirectory(`${directory.path}/sub`)).toMatchObject({ name: "sub" });
    expect(await client.writeText(a, text, { mode: 0o600 })).toMatchObject({ mode: 0o600, size: 2_000_000n });
    expect(await client.readText(a)).toBe(text);
    expect(await client.copy(a, b)).toMatchObject({ entries: 1n, bytes: 2_000_000n });
    expect(await client.move(b, c, { mode: MoveMode.NO_REPLACE })).toMatchObject({ path: c });
    expect([await client.exists(b), await client.exists(c)]).toEqual([false, true]);
    expect(await (await fetch(await client.signedUrl(a))).text()).toBe(text);
    expect(await client.remove(`${directory.path}/sub`, { recursive: true })).toBe(3);
    await expect(client.remove(a)).rejects.toMatchObject({ code: Code.NotFound });
    expect(await client.remove(a, { missingOk: true })).toBe(0);
    await expect(client.makeDirectory(directory.path, { mustNotExist: true })).rejects.toMatchObject({
      code: Code.AlreadyExists,
    });
  });

  it("are repeated when the daemon comes up only later", async () => {
    const first = await startDaemon();
    using client = createClient({ url: first.url, token: TOKEN });
    using directory = temporaryDirectory();
    await first.stop("SIGKILL");
    const writing = client.writeText(`${directory.path}/a`, "text");
    await using _ = await startDaemon({ args: ["--port", String(first.port)] });
    await writing;
    expect(readFileSync(`${directory.path}/a`, "utf8")).toBe("text");
  });
});
