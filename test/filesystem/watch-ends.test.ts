import { chmodSync, chownSync, mkdirSync, renameSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DebouncedChanges } from "../../src/filesystem/watching/debounce-changes.js";
import type { FileChangeKind } from "../../src/filesystem/watching/file-change.js";
import { KernelWatches } from "../../src/filesystem/watching/kernel-watches.js";
import { eventually } from "../helpers/eventually.js";
import { mount, unmount } from "../helpers/mounts.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { inotifyWatches, Watched } from "../helpers/watched.js";

const NOBODY = 65_534;

it.each<[how: string, end: (path: string) => void, message: string]>([
  ["removed", (path) => rmSync(path, { recursive: true }), "it was removed"],
  ["moved away", (path) => renameSync(path, `${path}-else`), "it was moved away"],
])("ends when the directory is %s", async (how, end, message) => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/root`;
  mkdirSync(`${path}/sub`, { recursive: true });
  await using watched = await Watched.open(path, { recursive: true });
  writeFileSync(`${path}/file`, "");
  end(path);
  await watched.tells(`ended: is watched no longer: ${message}`);
  expect(watched.told[0]).toBe("created file");
  if (how === "removed") expect(watched.told).toContain("removed sub/");
  expect(watched.told.at(-1)).toBe(`ended: is watched no longer: ${message}`);
  mkdirSync(path);
  writeFileSync(`${path}/again`, "");
  await eventually("the instance is closed", () => inotifyWatches().length === 0);
  expect(watched.told.at(-1)).toContain("ended");
});

it("ends when the file system is unmounted, which it does not hinder, and does not enter others below", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  mount("tmpfs", path);
  try {
    mkdirSync(`${path}/other/sub`, { recursive: true });
    mkdirSync(`${path}/own/sub`, { recursive: true });
    mount("tmpfs", `${path}/other`);
    mkdirSync(`${path}/other/sub`);
    await using watched = await Watched.open(path, { recursive: true });
    expect(watched.watch.directories).toBe(3);
    writeFileSync(`${path}/other/sub/unseen`, "");
    expect(await watched.since()).toEqual([]);
    unmount(`${path}/other`);
    unmount(path);
    await watched.tells("ended: is watched no longer: its file system was unmounted");
  } finally {
    unmount(`${path}/other`);
    unmount(path);
  }
});

it("sees one inode on both of its paths", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  for (const name of ["a/sub", "b"]) mkdirSync(`${path}/${name}`, { recursive: true });
  mount("bind", `${path}/b`, `${path}/a`);
  try {
    await using watched = await Watched.open(path, { recursive: true });
    expect([watched.watch.directories, inotifyWatches()]).toEqual([5, [3]]);
    writeFileSync(`${path}/b/sub/x`, "");
    renameSync(`${path}/a/sub/x`, `${path}/a/y`);
    expect((await watched.since()).toSorted()).toEqual([
      "created a/sub/x",
      "created b/sub/x",
      "moved a/sub/x > a/y",
      "moved b/sub/x > b/y",
    ]);
    mkdirSync(`${path}/a/new`);
    expect((await watched.since()).toSorted()).toEqual(["created a/new/", "created b/new/"]);
    expect([watched.watch.directories, inotifyWatches()]).toEqual([7, [4]]);
  } finally {
    unmount(`${path}/b`);
  }
});

it("lets users watch what they can read, and shares the watches of all", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  for (const name of ["open", "closed/sub", "own"]) mkdirSync(`${path}/${name}`, { recursive: true });
  chmodSync(`${path}/closed`, 0o700);
  // Owned by nobody, who may nevertheless not read it.
  chownSync(`${path}/own`, NOBODY, NOBODY);
  chmodSync(`${path}/own`, 0o300);
  const watches = new KernelWatches();
  await using root = await Watched.open(path, { recursive: true }, "root", watches);
  expect([root.watch.directories, inotifyWatches()]).toEqual([5, [5]]);
  {
    await using nobody = await Watched.open(path, { recursive: true }, "nobody", watches);
    expect(nobody.told).toEqual(["unwatched closed EACCES", "unwatched own EACCES"]);
    expect([nobody.watch.directories, inotifyWatches()]).toEqual([2, [5]]);
    nobody.events.length = 0;
    writeFileSync(`${path}/closed/secret`, "");
    writeFileSync(`${path}/open/x`, "");
    expect(await nobody.since()).toEqual(["created open/x"]);
    expect(await root.since()).toEqual(["created closed/secret", "created open/x"]);
    // What becomes readable is watched from then on.
    chmodSync(`${path}/closed`, 0o755);
    expect(await nobody.since()).toEqual(["attributes closed/", "created closed/secret", "created closed/sub/"]);
    await expect(Watched.open(`${path}/own`, {}, "nobody", watches)).rejects.toMatchObject({ code: "EACCES" });
  }
  writeFileSync(`${path}/open/y`, "");
  rmdirSync(`${path}/closed/sub`);
  expect(await root.since()).toEqual(["attributes closed/", "created open/y", "removed closed/sub/"]);
  await expect(Watched.open(`${path}/open/y`, {}, "root", watches)).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(Watched.open(`${path}/none`, {}, "root", watches)).rejects.toMatchObject({ code: "ENOENT" });
  root.watch.close();
  await eventually("the instance is closed", () => inotifyWatches().length === 0);
});

it("watches 1,000 directories and releases them", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  for (let number = 0; number < 999; number++) mkdirSync(`${path}/${number % 30}/${number}`, { recursive: true });
  const watches = new KernelWatches();
  await using flat = await Watched.open(path, {}, "root", watches);
  for (let round = 0; round < 3; round++) {
    await using watched = await Watched.open(path, { recursive: true }, "root", watches);
    expect(inotifyWatches()).toEqual([watched.watch.directories]);
    expect(watched.watch.directories).toBeGreaterThan(1000);
    watched.watch.close();
    await eventually("one is left", () => inotifyWatches()[0] === 1);
  }
  flat.watch.close();
  await eventually("the instance is closed", () => inotifyWatches().length === 0);
});

it("reports what came of it when nothing has happened to a path for a while", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  writeFileSync(`${path}/old`, "");
  await using watched = await Watched.open(path, { debounceMs: 200, recursive: true });
  mkdirSync(`${path}/d`);
  writeFileSync(`${path}/d/file`, "x");
  writeFileSync(`${path}/gone`, "x");
  unlinkSync(`${path}/gone`);
  writeFileSync(`${path}/old`, "x");
  chmodSync(`${path}/old`, 0o600);
  writeFileSync(`${path}/saved.tmp`, "x");
  renameSync(`${path}/saved.tmp`, `${path}/saved`);
  expect(await watched.since()).toEqual([]);
  await watched.tells("created saved");
  expect(watched.told).toEqual(["created d/", "created d/file", "modified old", "created saved"]);
});

it.each<[given: string, comes: string]>([
  ["created a, modified a", "created a"],
  ["created a, removed a", ""],
  ["modified a, attributes a, modified a", "modified a"],
  ["attributes a, attributes a", "attributes a"],
  ["modified a, removed a", "removed a"],
  ["removed a, created a", "modified a"],
  ["created a, moved a b", "created b"],
  ["created a, moved a b, moved b c", "created c"],
  ["moved a b, moved b c", "moved a c"],
  ["moved a b, removed b", "removed a"],
  ["moved a b, modified b", "moved a b, modified b"],
  ["modified a, moved a b", "modified a, moved a b"],
  ["removed b, created a, moved a b", "modified b"],
  ["moved a b, created a, removed b", "removed a, created a"],
])("makes of %s: %s", (given, comes) => {
  const reported: string[] = [];
  const debounced = new DebouncedChanges(1000, ({ kind, path, fromPath }) =>
    reported.push([kind, ...(fromPath === undefined ? [] : [fromPath]), path].join(" ")),
  );
  for (const text of given.split(", ")) {
    const [kind, first = "", second] = text.split(" ") as [FileChangeKind, string, string?];
    debounced.add({ kind, path: second ?? first, fromPath: second && first, isDirectory: false, timeMs: 0 });
  }
  debounced.flush();
  debounced.close();
  expect(reported.join(", ")).toBe(comes);
});
