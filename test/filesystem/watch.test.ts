import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { accessAs, writeWhole } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { inotifyWatches, Watched } from "../helpers/watched.js";

it("tells what happens to entries and to the directory itself, and nothing of what is below", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  mkdirSync(`${path}/sub`);
  writeFileSync(`${path}/old`, "");
  await using watched = await Watched.open(path);
  expect(watched.watch.directories).toBe(1);
  writeFileSync(`${path}/new`, "content");
  chmodSync(`${path}/old`, 0o600);
  expect(await watched.since()).toEqual(["created new", "modified new", "attributes old"]);
  writeFileSync(`${path}/sub/deep`, "");
  mkdirSync(`${path}/sub2/a`, { recursive: true });
  symlinkSync("sub", `${path}/link`);
  chmodSync(path, 0o750);
  unlinkSync(`${path}/old`);
  rmSync(`${path}/sub2`, { recursive: true });
  const told = await watched.since();
  expect(told).toEqual(["created sub2/", "created link", "attributes ./", "removed old", "removed sub2/"]);
});

it("pairs renames, and calls what comes from elsewhere or goes there created or removed", async () => {
  using directory = temporaryDirectory();
  using elsewhere = temporaryDirectory();
  const { path } = directory;
  mkdirSync(`${path}/a/deep`, { recursive: true });
  writeFileSync(`${path}/a/deep/file`, "");
  await using watched = await Watched.open(path, { recursive: true });
  renameSync(`${path}/a`, `${path}/b`);
  expect(await watched.since()).toEqual(["moved a/ > b/"]);
  appendFileSync(`${path}/b/deep/file`, "more");
  renameSync(`${path}/b/deep/file`, `${path}/file`);
  expect(await watched.since()).toEqual(["modified b/deep/file", "moved b/deep/file > file"]);
  renameSync(`${path}/b`, `${elsewhere.path}/b`);
  writeFileSync(`${elsewhere.path}/b/unseen`, "");
  renameSync(`${path}/file`, `${elsewhere.path}/file`);
  expect(await watched.since()).toEqual(["removed b/", "removed file"]);
  renameSync(`${elsewhere.path}/b`, `${path}/c`);
  expect(await watched.since()).toEqual(["created c/", "created c/deep/", "created c/unseen"]);
  renameSync(`${elsewhere.path}/file`, `${path}/c/file`);
  expect(await watched.since()).toEqual(["created c/file"]);
  writeFileSync(`${path}/c/deep/x`, "");
  expect(await watched.since()).toEqual(["created c/deep/x"]);
});

it("tells of uploads when they are whole, and never of their temporary names", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  await using watched = await Watched.open(path);
  await writeWhole(accessAs(), `${path}/file`, "first");
  expect(await watched.since()).toEqual(["created file"]);
  await writeWhole(accessAs(), `${path}/file`, "second");
  expect(await watched.since()).toEqual(["modified file"]);
  await writeWhole(accessAs(), `${path}/.picod-0123456789abcdef.tmp`, "x");
  mkdirSync(`${path}/.picod-0123456789abcdee.tmp`);
  renameSync(`${path}/.picod-0123456789abcdef.tmp`, `${path}/other`);
  renameSync(`${path}/other`, `${path}/.picod-0123456789abcdef.tmp`);
  expect(await watched.since()).toEqual(["created other", "removed other"]);
});

it("misses nothing in directories that are made and filled at once", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  await using watched = await Watched.open(path, { recursive: true });
  for (let round = 0; round < 200; round++) {
    mkdirSync(`${path}/${round}/b/c/d`, { recursive: true });
    writeFileSync(`${path}/${round}/b/c/d/file`, "x");
    // Some of the rounds leave the daemon time to see a part of it.
    if (round % 3 === 0) await new Promise(setImmediate);
  }
  const told = await watched.since();
  for (let round = 0; round < 200; round++) {
    const of = told.filter((line) => line.startsWith("created ") && line.slice(8).split("/")[0] === String(round));
    expect(of).toEqual(
      [`${round}/`, `${round}/b/`, `${round}/b/c/`, `${round}/b/c/d/`, `${round}/b/c/d/file`].map((p) => `created ${p}`),
    );
  }
  expect(watched.watch.directories).toBe(801);
  writeFileSync(`${path}/199/b/c/d/later`, "");
  expect(await watched.since()).toEqual(["created 199/b/c/d/later"]);
  expect(inotifyWatches()).toEqual([801]);
});

it("reports what matches, and does not enter what is excluded", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  mkdirSync(`${path}/node_modules/a`, { recursive: true });
  mkdirSync(`${path}/src/a`, { recursive: true });
  writeFileSync(`${path}/src/a/x.txt`, "");
  const options = { recursive: true, include: ["*.txt"], exclude: ["node_modules", "*.tmp.txt"] };
  await using watched = await Watched.open(path, options);
  expect(watched.watch.directories).toBe(3);
  for (const name of ["src/a.txt", "src/b.log", "node_modules/a/c.txt", "src/a/d.tmp.txt"]) writeFileSync(join(path, name), "");
  mkdirSync(`${path}/node_modules/b/c`, { recursive: true });
  expect(await watched.since()).toEqual(["created src/a.txt"]);
  renameSync(`${path}/src/b.log`, `${path}/src/b.txt`);
  renameSync(`${path}/src/b.txt`, `${path}/src/c.txt`);
  renameSync(`${path}/src/c.txt`, `${path}/src/c.log`);
  renameSync(`${path}/src/c.log`, `${path}/src/a.txt`);
  expect(await watched.since()).toEqual([
    "created src/b.txt",
    "moved src/b.txt > src/c.txt",
    "removed src/c.txt",
    "modified src/a.txt",
  ]);
  // What is in it moves along.
  renameSync(`${path}/src/a`, `${path}/src/b`);
  renameSync(`${path}/src/b`, `${path}/node_modules/src`);
  expect(await watched.since()).toEqual(["moved src/a/ > src/b/", "removed src/b/"]);
});

it("reports the kinds that are asked for", async () => {
  using directory = temporaryDirectory();
  const { path } = directory;
  await using watched = await Watched.open(path, { kinds: ["removed", "moved"] });
  writeFileSync(`${path}/a`, "x");
  renameSync(`${path}/a`, `${path}/b`);
  unlinkSync(`${path}/b`);
  expect(await watched.since()).toEqual(["moved a > b", "removed b"]);
});
