import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { type ListedEntries, listDirectory } from "../../src/filesystem/list-directory.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();
const nobody = accessAs("nobody");
const open = () => readdirSync("/proc/self/fd").length;

async function list(as: Access, path: string, depth = 1): Promise<{ paths: string[]; unreadable: string[]; batches: number }> {
  const batches: ListedEntries[] = [];
  for await (const batch of listDirectory(as, path, depth, new AbortController().signal)) batches.push(batch);
  return {
    paths: batches.flatMap(({ entries }) => entries.map((entry) => entry.path.slice(path.length))),
    unreadable: batches.flatMap(({ unreadable }) =>
      unreadable.map((entry) => `${entry.path.slice(path.length)} ${entry.reason}`),
    ),
    batches: batches.length,
  };
}

it("lists hidden entries, describes links, and keeps hidden files of ours to itself", async () => {
  using directory = temporaryDirectory();
  mkdirSync(`${directory.path}/sub/below`, { recursive: true });
  mkdirSync(`${directory.path}/.picod-0123456789abcdef.tmp`);
  for (const name of [
    ".hidden",
    "b",
    "sub/x",
    ".picod-0123456789abcdef.tmp/y",
    "sub/.picod-0123456789abcdee.tmp",
    ".picod-x.tmp",
  ])
    writeFileSync(`${directory.path}/${name}`, "");
  symlinkSync("sub", `${directory.path}/a-link`);
  expect((await list(access, directory.path)).paths).toEqual(["/.hidden", "/.picod-x.tmp", "/a-link", "/b", "/sub"]);
  expect((await list(access, directory.path, 2)).paths.slice(-2)).toEqual(["/sub/below", "/sub/x"]);
  const [entry] =
    (await listDirectory(access, `${directory.path}/`, 1, new AbortController().signal).next()).value?.entries ?? [];
  expect(entry).toMatchObject({ name: ".hidden", path: `${directory.path}/.hidden`, kind: "file" });
  const { paths } = await list(access, `${directory.path}/a-link`, 0);
  expect(paths).toEqual(["/below", "/x"]);
});

it("says what it could not read, and goes on", async () => {
  using directory = temporaryDirectory();
  for (const name of ["closed", "open", "unsearchable"]) {
    mkdirSync(`${directory.path}/${name}`);
    writeFileSync(`${directory.path}/${name}/file`, "");
  }
  chmodSync(`${directory.path}/closed`, 0o700);
  chmodSync(`${directory.path}/unsearchable`, 0o744);
  expect(await list(nobody, directory.path, 0)).toMatchObject({
    paths: ["/closed", "/open", "/open/file", "/unsearchable"],
    unreadable: ["/closed EACCES", "/unsearchable/file EACCES"],
  });
});

it("sends what it could not describe in batches too", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 3_000; index++) writeFileSync(`${directory.path}/${index}`, "");
  chmodSync(directory.path, 0o744);
  const { unreadable, batches } = await list(nobody, directory.path);
  expect(unreadable.length).toBe(3_000);
  expect(batches).toBeGreaterThan(10);
});

it.each([
  ["missing", "ENOENT"],
  ["file", "ENOTDIR"],
  ["file/below", "ENOTDIR"],
  ["loop", "ELOOP"],
  ["x".repeat(256), "ENAMETOOLONG"],
])("%s is %s", async (name, code) => {
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/file`, "");
  symlinkSync("loop", `${directory.path}/loop`);
  const path = `${directory.path}/${name}`;
  const before = open();
  await expect(list(access, path)).rejects.toMatchObject({ code, path });
  expect(open()).toBe(before);
});

it("lists what it can of a directory that is removed meanwhile", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 2_000; index++) {
    mkdirSync(`${directory.path}/all/${index}`, { recursive: true });
    writeFileSync(`${directory.path}/all/${index}/file`, "");
  }
  let count = 0;
  for await (const { entries, unreadable } of listDirectory(access, `${directory.path}/all`, 0, new AbortController().signal)) {
    if (count === 0) rmSync(`${directory.path}/all`, { recursive: true });
    count += entries.length;
    expect(unreadable).toEqual([]);
  }
  expect(count).toBeGreaterThan(0);
  expect(count).toBeLessThan(4_000);
});

it("sends paths that are long in messages that are not", async () => {
  using directory = temporaryDirectory();
  const script = 'cd "$1"; for i in $(seq 60); do mkdir "$2"; cd "$2"; done; seq 1000 | xargs touch';
  execFileSync("bash", ["-c", script, "bash", directory.path, "d".repeat(200)]);
  let most = 0;
  let count = 0;
  for await (const { entries } of listDirectory(access, directory.path, 0, new AbortController().signal)) {
    count += entries.length;
    most = Math.max(
      most,
      entries.map((entry) => entry.path.length).reduce((sum, length) => sum + length, 0),
    );
  }
  // Paths of such a length are too long for rmSync of Node 22.
  execFileSync("rm", ["-r", join(directory.path, "d".repeat(200))]);
  expect(count).toBe(1_060);
  expect(most).toBeLessThan(200_000);
});

it("stops when the caller does", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 1_000; index++) mkdirSync(`${directory.path}/${index}`);
  const before = open();
  const cancel = new AbortController();
  const listing = listDirectory(access, directory.path, 0, cancel.signal);
  await listing.next();
  cancel.abort();
  await expect(async () => {
    for await (const _ of listing);
  }).rejects.toThrow(/abort/);
  expect(open()).toBe(before);
});
