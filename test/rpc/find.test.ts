import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import {
  FileType,
  type FindRequestSchema,
  type FindSummary,
  type SearchMatch,
  type SearchRequestSchema,
  type SearchSummary,
  SearchSummarySchema,
} from "../../src/gen/picod/v1/filesystem_pb.js";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { openFilesIn } from "./support/open-files.js";

async function found({ filesystem }: Clients, request: MessageInitShape<typeof FindRequestSchema>) {
  const paths: string[] = [];
  let summary: FindSummary | undefined;
  for await (const response of filesystem.find(request)) {
    paths.push(...response.entries.map(({ path }) => path.slice((request.path?.length ?? 0) + 1)));
    summary = response.summary;
  }
  return { paths, summary };
}

async function searched({ filesystem }: Clients, request: MessageInitShape<typeof SearchRequestSchema>) {
  const matches: SearchMatch[] = [];
  let summary: SearchSummary = create(SearchSummarySchema);
  for await (const { event } of filesystem.search(request)) {
    if (event.case === "match") matches.push(event.value);
    if (event.case === "summary") summary = event.value;
  }
  return { matches, summary };
}

function threads(daemon: Daemon): number {
  return Number(/Threads:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1]);
}

describe.each(["gRPC", "Connect over HTTP/1.1"] as const)("over %s", (protocol) => {
  it("finds and searches", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    using directory = temporaryDirectory();
    const { path } = directory;
    mkdirSync(`${path}/src/deep`, { recursive: true });
    for (const file of ["a.ts", "src/b.ts", "src/deep/c.js"])
      writeFileSync(join(path, file), `first\nin ${file} a needle\nlast\n`);
    writeFileSync(Buffer.concat([Buffer.from(`${path}/raw`), Buffer.of(0xff)]), "needle");
    symlinkSync("/", `${path}/link`);
    execFileSync("mkfifo", [`${path}/pipe`]);

    const { paths, summary } = await found(clients, { path, include: ["*.ts"], types: [FileType.FILE] });
    expect(paths).toEqual(["a.ts", "src/b.ts"]);
    expect(summary).toMatchObject({ matched: 2n, visited: 8n, unreadableCount: 0n });

    const all = await searched(clients, { path, pattern: "needle", contextBefore: 1, contextAfter: 1 });
    expect(all.matches.map((match) => match.path.slice(path.length + 1))).toEqual([
      "a.ts",
      "raw\uefff",
      "src/b.ts",
      "src/deep/c.js",
    ]);
    expect(all.matches[0]).toMatchObject({
      lineNumber: 2n,
      line: "in a.ts a needle",
      offset: 6n,
      matches: [{ start: 10n, end: 16n }],
      before: ["first"],
      after: ["last"],
      lineTruncated: false,
    });
    expect(all.summary).toMatchObject({
      matchedLines: 4n,
      matchedFiles: 4n,
      searchedFiles: 4n,
      binaryFiles: 0n,
      truncated: false,
    });
    const some = await searched(clients, {
      path,
      pattern: "N(E+)DLE$",
      regex: true,
      ignoreCase: true,
      exclude: ["src"],
      maxMatches: 1n,
    });
    expect(some.matches.map((match) => match.line)).toEqual(["in a.ts a needle"]);
    expect(some.summary).toMatchObject({ matchedLines: 2n, truncated: true });
    const one = await searched(clients, { path: `${path}/a.ts`, pattern: "a", countOnly: true });
    expect(one).toMatchObject({ matches: [], summary: { matchedLines: 2n, searchedFiles: 1n, truncated: false } });
    expect(openFilesIn(daemon, path)).toEqual([]);
  });

  it("refuses malformed patterns, naming them", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url, { protocol });
    const path = "/etc";
    const invalid = { code: Code.InvalidArgument };
    await expect(found(clients, { path, include: ["[a"] })).rejects.toMatchObject(invalid);
    await expect(found(clients, { path, types: [99 as FileType] })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path, pattern: "" })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path, pattern: "(", regex: true })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path, pattern: "(", regex: true })).rejects.toThrow(/\(/);
    await expect(searched(clients, { path, pattern: "a", exclude: ["{"] })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path, pattern: "a", contextBefore: 101 })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path, pattern: "a", maxLineBytes: 100_000 })).rejects.toMatchObject(invalid);
    await expect(searched(clients, { path: "/dev/null", pattern: "a" })).rejects.toMatchObject({ code: Code.FailedPrecondition });
    await expect(searched(clients, { path: "/nowhere", pattern: "a" })).rejects.toMatchObject({ code: Code.NotFound });
  });
});

it("does what the user may, and names what could not be read", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  const { path } = directory;
  mkdirSync(`${path}/closed`, { mode: 0o700 });
  for (const file of ["open", "secret", "closed/file"]) writeFileSync(join(path, file), "needle");
  chmodSync(`${path}/secret`, 0o600);
  const { matches, summary } = await searched(clients, { path, pattern: "needle", user: "nobody" });
  expect(matches.map((match) => match.path)).toEqual([`${path}/open`]);
  expect(summary.unreadable.map((entry) => [entry.path, entry.reason])).toEqual([
    [`${path}/closed`, "EACCES"],
    [`${path}/secret`, "EACCES"],
  ]);
  const { paths, summary: findSummary } = await found(clients, { path, user: "nobody" });
  expect(paths).toEqual(["closed", "open", "secret"]);
  expect(findSummary?.unreadable.map((entry) => entry.path)).toEqual([`${path}/closed`]);
});

it("agrees with grep about a tree of the system", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  const path = "/usr/share/perl";
  const grep = (flags: string, pattern: string) =>
    execFileSync("grep", ["-rnI", "--no-messages", flags, "-e", pattern, path], {
      env: { LC_ALL: "C.UTF-8" },
      maxBuffer: 2 ** 28,
    })
      .toString()
      .split("\n")
      .slice(0, -1)
      .map((line) => line.split(":", 2).join(":"));
  for (const [flags, pattern, options] of [
    ["-F", "copyright", {}],
    ["-Fi", "COPYRIGHT", { ignoreCase: true }],
    ["-E", "sub [a-z]+_[a-z]+ ", { regex: true }],
  ] as const) {
    const { matches } = await searched(clients, { path, pattern, ...options, maxMatches: 1_000_000n });
    const lines = matches.map((match) => `${match.path}:${match.lineNumber}`);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.toSorted()).toEqual(grep(flags, pattern).toSorted());
  }
});

it("serves others while a costly expression runs, and stops when it is cancelled", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  const path = `${directory.path}/big`;
  writeFileSync(path, `${"ab".repeat(500)}c\n`.repeat(20_000));
  const idle = threads(daemon);
  const cancel = new AbortController();
  const request = { path, pattern: "(a|b|ab)*(a|ba){1,300}(b|ab){1,300}[0-9]c", regex: true };
  const searching = (async () => {
    for await (const _ of clients.filesystem.search(request, { signal: cancel.signal }));
  })();
  const ended = expect(searching).rejects.toMatchObject({ code: Code.Canceled });
  await eventually("it runs", () => openFilesIn(daemon, directory.path).length > 0);
  const times: number[] = [];
  for (let index = 0; index < 100; index++) {
    const begun = performance.now();
    await clients.filesystem.stat({ path });
    times.push(performance.now() - begun);
  }
  expect(openFilesIn(daemon, directory.path)).not.toEqual([]);
  expect(times.toSorted((a, b) => a - b)[49]).toBeLessThan(100);
  cancel.abort();
  await ended;
  await eventually("its thread is gone", () => threads(daemon) <= idle);
  await eventually("its file is closed", () => openFilesIn(daemon, directory.path).length === 0);
});

it("runs more searches than there are threads for", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/file`, "needle\n");
  const all = await Promise.all(Array.from({ length: 12 }, () => searched(clients, { path: directory.path, pattern: "needle" })));
  expect(all.map(({ matches }) => matches.length)).toEqual(all.map(() => 1));
});

it("sends many long matches in messages of a bearable size", async () => {
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/file`, `${"needle ".repeat(9000)}\n`.repeat(60));
  const request = { path: directory.path, pattern: "needle", maxLineBytes: 65_536, contextBefore: 100, contextAfter: 100 };
  const { matches, summary } = await searched(clients, request);
  expect([matches.length, summary.matchedLines]).toEqual([60, 60n]);
  truncateSync(`${directory.path}/file`, 0);
});
