import { closeSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SortedNames } from "../../src/filesystem/walking/sorted-names.js";
import { inTurns, openWalk, type WalkOptions, walk } from "../../src/filesystem/walking/walk.js";
import { statIn } from "../../src/os/directory.js";
import { makeDeep } from "../helpers/deep-directory.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

async function pathsBelow(directory: string, options: Partial<WalkOptions> = {}): Promise<string[]> {
  const access = accessAs();
  const fd = openWalk(access, directory);
  const paths: string[] = [];
  try {
    const steps = walk(fd, { onUnreadable: (path, error) => expect.fail(`${path}: ${error}`), ...options });
    for await (const batch of inTurns(access, steps, 256, new AbortController().signal, (entry) => entry.relativePath)) {
      paths.push(...batch);
    }
  } finally {
    closeSync(fd);
  }
  return paths;
}

it("goes depth first, in the order of bytes, and follows no link", async () => {
  using temporary = temporaryDirectory();
  const directory = temporary.path;
  mkdirSync(join(directory, "b/sub/deep"), { recursive: true });
  mkdirSync(join(directory, "a"));
  symlinkSync(join(directory, "b"), join(directory, "link"));
  for (const name of ["B", "a.txt", ".hidden", "b/z", "b/sub/deep/x", "é"]) writeFileSync(join(directory, name), "");
  expect(await pathsBelow(directory)).toEqual([
    ".hidden",
    "B",
    "a",
    "a.txt",
    "b",
    "b/sub",
    "b/sub/deep",
    "b/sub/deep/x",
    "b/z",
    "link",
    "é",
  ]);
  expect(await pathsBelow(directory, { maxDepth: 1 })).toEqual([".hidden", "B", "a", "a.txt", "b", "link", "é"]);
  expect(await pathsBelow(directory, { enters: ({ name }) => name !== "sub" })).not.toContain("b/sub/deep");
});

it("describes entries as Node does", () => {
  using temporary = temporaryDirectory();
  const directory = temporary.path;
  writeFileSync(join(directory, "file"), "12345");
  const fd = openWalk(accessAs(), directory);
  const stats = statIn(fd, "file");
  expect(statSync(join(directory, "file"), { bigint: true })).toMatchObject({ ...stats });
  closeSync(fd);
});

it("leaves out what vanishes while it is walked", async () => {
  using temporary = temporaryDirectory();
  const directory = temporary.path;
  for (const name of ["a", "b", "c"]) mkdirSync(join(directory, name));
  const enters: WalkOptions["enters"] = ({ name }) => {
    if (name === "a") for (const other of ["a", "b"]) rmSync(join(directory, other), { recursive: true });
    return true;
  };
  expect(await pathsBelow(directory, { enters })).toEqual(["a", "c"]);
});

it("sorts more names than one run holds", () => {
  const names = Array.from({ length: 20_480 }, (_, index) => `name-${(index * 7919) % 20_480}`);
  const sorted = new SortedNames();
  for (const name of names) sorted.add(Buffer.from(name));
  const taken: string[] = [];
  for (let name = sorted.take(); name !== undefined; name = sorted.take()) taken.push(name.toString());
  expect(taken).toEqual(names.toSorted());
});

it("leaving early closes every directory", async () => {
  using temporary = temporaryDirectory();
  const directory = temporary.path;
  mkdirSync(join(directory, "a/b/c"), { recursive: true });
  const access = accessAs();
  const before = readdirSync("/proc/self/fd").length;
  const fd = openWalk(access, directory);
  const steps = walk(fd, { onUnreadable: () => undefined });
  for await (const [path] of inTurns(access, steps, 1, new AbortController().signal, (entry) => entry.relativePath)) {
    if (path === "a/b/c") break;
  }
  closeSync(fd);
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});

it("keeps names that are longer than 255 bytes, as some file systems have them", () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `${"é".repeat(300)}${index % 7}-${index}`);
  const sorted = new SortedNames();
  for (const name of names) sorted.add(Buffer.from(name));
  const taken: string[] = [];
  for (let name = sorted.take(); name !== undefined; name = sorted.take()) taken.push(name.toString());
  expect(taken).toEqual(names.toSorted());
});

it("walks a tree of thousands of levels with few open directories", async () => {
  using temporary = mountedTmpfs();
  makeDeep(temporary.path, 1_000);
  const open = () => readdirSync("/proc/self/fd").length;
  const before = open();
  let most = 0;
  const startedAt = performance.now();
  const paths = await pathsBelow(temporary.path, {
    enters: ({ depth }) => {
      if (depth % 100 === 0) most = Math.max(most, open());
      return true;
    },
  });
  expect(paths.length).toBe(2_000);
  expect(paths[999]).toBe(Array(1_000).fill("d").join("/"));
  // On the way back the sibling of each directory comes, the deepest first.
  expect(paths.slice(1_000).map((path) => path.length)).toEqual(Array.from({ length: 1_000 }, (_, level) => 1_999 - 2 * level));
  expect(most - before).toBeLessThan(80);
  expect(open()).toBe(before);
  // Quadratic in the depth it takes many seconds.
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

it("comes back to the same directories when they are moved while it is deep below", async () => {
  using temporary = mountedTmpfs();
  const directory = temporary.path;
  makeDeep(directory, 200);
  mkdirSync(join(directory, "z"));
  const chain = (levels: number) => Array(levels).fill("d").join("/");
  let moved = false;
  const paths = await pathsBelow(directory, {
    enters: ({ depth, name }) => {
      if (depth === 150 && name === "d" && !moved) {
        moved = true;
        // Its way back by `..` leads to z; by names it still leads down to what was left behind.
        renameSync(join(directory, chain(51)), join(directory, "z/moved"));
        mkdirSync(join(directory, chain(51)));
      }
      return true;
    },
  });
  expect(paths).toContain(`${chain(200)}`);
  expect(paths).toContain(`${chain(50)}/e`);
  expect(paths).toContain("z/moved/d");
  expect(new Set(paths).size).toBe(paths.length);
});
