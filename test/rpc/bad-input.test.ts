import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { openFilesIn } from "./support/open-files.js";

const LONG = "n".repeat(256);

async function drain<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) all.push(message);
  return all;
}

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => expect.unreachable("it did not fail"),
    (thrown) => ConnectError.from(thrown),
  );
}

function archiveOf(directory: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(execFileSync("tar", ["-c", "-C", directory, "."], { maxBuffer: 2 ** 28 }));
}

async function* unpacking(path: string, archive: Uint8Array<ArrayBuffer>, atomic = false) {
  yield { request: { case: "metadata" as const, value: { path, atomic } } };
  for (let at = 0; at < archive.length; at += 100_000)
    yield { request: { case: "chunk" as const, value: archive.subarray(at, at + 100_000) } };
}

/** Each operation on a path that is wrong in itself. */
const OPERATIONS: Readonly<Record<string, (clients: Clients, path: string, good: string) => Promise<unknown>>> = {
  list: ({ filesystem }, path) => drain(filesystem.listDirectory({ path })),
  "make a directory": ({ filesystem }, path) => filesystem.makeDirectory({ path, mustNotExist: true }),
  "move from": ({ filesystem }, path, good) => filesystem.move({ source: path, destination: good }),
  "move to": ({ filesystem }, path, good) => filesystem.move({ source: `${good}/file`, destination: `${path}/x` }),
  "copy from": ({ filesystem }, path, good) => filesystem.copy({ source: `${path}/x`, destination: good }),
  "copy to": ({ filesystem }, path, good) => filesystem.copy({ source: `${good}/file`, destination: `${path}/x` }),
  remove: ({ filesystem }, path) => filesystem.remove({ path: `${path}/x` }),
  "set attributes": ({ filesystem }, path) => filesystem.setAttributes({ path, mode: 0o700 }),
  watch: ({ filesystem }, path) => drain(filesystem.watchDirectory({ path })),
  find: ({ filesystem }, path) => drain(filesystem.find({ path })),
  search: ({ filesystem }, path) => drain(filesystem.search({ path: `${path}/x`, pattern: "x" })),
  archive: ({ filesystem }, path) => drain(filesystem.readArchive({ path: `${path}/x` })),
  unpack: ({ filesystem }, path, good) => filesystem.writeArchive(unpacking(`${path}/x`, archiveOf(good))),
  "unpack at once": ({ filesystem }, path, good) => filesystem.writeArchive(unpacking(`${path}/x`, archiveOf(good), true)),
};

describe("a path that is wrong in itself", () => {
  it.each(Object.keys(OPERATIONS))("is named with the cause: %s", async (name) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using directory = temporaryDirectory();
    const good = `${directory.path}/good`;
    mkdirSync(good);
    writeFileSync(`${good}/file`, "x");
    symlinkSync("loop", `${directory.path}/loop`);
    writeFileSync(`${directory.path}/plain`, "x");
    const before = readdirSync(directory.path, { recursive: true }).toSorted();
    const descriptors = daemon.descriptors();
    const run = OPERATIONS[name] as (clients: Clients, path: string, good: string) => Promise<unknown>;
    const wrong: [path: string, code: Code[], cause: RegExp][] = [
      [`${directory.path}/${LONG}`, [Code.InvalidArgument], /name too long/],
      [`${directory.path}/loop/sub`, [Code.FailedPrecondition], /too many symbolic links/],
      [`${directory.path}/plain/sub`, [Code.FailedPrecondition], /not a directory/],
      [`${directory.path}/${"d/".repeat(2100)}`, [Code.InvalidArgument], /bytes long/],
      [`${directory.path}/nul\0`, [Code.InvalidArgument], /NUL/],
    ];
    for (const [path, codes, cause] of wrong) {
      const error = await failure(run(clients, path, good));
      expect(codes, `${path.slice(0, 100)}: ${error.message}`).toContain(error.code);
      expect(error.rawMessage).toMatch(cause);
      expect(error.rawMessage).toContain(directory.path);
    }
    expect(readdirSync(directory.path, { recursive: true }).toSorted()).toEqual(before);
    await eventually("all descriptors are closed", () => daemon.descriptors() <= descriptors + 1);
  });
});

describe("a full disk", () => {
  /** A tree with more in it than fits. */
  const makeTree = (path: string) => {
    mkdirSync(`${path}/tree/sub`, { recursive: true });
    for (let number = 0; number < 10; number++) writeFileSync(`${path}/tree/sub/${number}`, Buffer.alloc(50_000, "x"));
  };
  const calls: [name: string, call: (clients: Clients, tree: string, full: string) => Promise<unknown>][] = [
    ["copy", ({ filesystem }, tree, full) => filesystem.copy({ source: tree, destination: `${full}/new/copy` })],
    ["move", ({ filesystem }, tree, full) => filesystem.move({ source: tree, destination: `${full}/new/moved` })],
    [
      "unpack at once",
      ({ filesystem }, tree, full) => filesystem.writeArchive(unpacking(`${full}/new/unpacked`, archiveOf(tree), true)),
    ],
    ["make directories", ({ filesystem }, _, full) => filesystem.makeDirectory({ path: `${full}/new/${"d/".repeat(200)}e` })],
  ];
  it.each(calls)("leaves nothing of what does not fit, at any step: %s", async (name, call) => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    using source = temporaryDirectory();
    makeTree(source.path);
    const before = readdirSync(source.path, { recursive: true }).toSorted();
    for (const options of ["size=300k", "nr_inodes=2", "nr_inodes=3", "nr_inodes=4", "nr_inodes=7", "nr_inodes=10", "size=4k"]) {
      if (options.startsWith("size") && name === "make directories") continue;
      using full = mountedTmpfs(options);
      const error = await failure(call(clients, `${source.path}/tree`, full.path));
      expect(error.code, `${options}: ${error.message}`).toBe(Code.ResourceExhausted);
      expect(error.rawMessage).toContain(full.path);
      expect(error.rawMessage).toMatch(/no space left on device|do not fit/);
      await eventually("nothing is left", () => readdirSync(full.path).length === 0);
      expect(openFilesIn(daemon, full.path)).toEqual([]);
    }
    expect(readdirSync(source.path, { recursive: true }).toSorted()).toEqual(before);
  });
});
