import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { type FindEvent, type FindOptions, find } from "../../src/filesystem/find.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const root = accessAs();
const nobody = accessAs("nobody");
const EVERYTHING: FindOptions = {
  patterns: { include: [], exclude: [] },
  kinds: [],
  minSize: undefined,
  maxSize: undefined,
  modifiedSinceNs: undefined,
  modifiedBeforeNs: undefined,
  maxDepth: Number.POSITIVE_INFINITY,
  maxResults: Number.POSITIVE_INFINITY,
};

type Options = Partial<FindOptions> & Partial<FindOptions["patterns"]>;
type Summary = Extract<FindEvent, { kind: "summary" }>;

async function found(path: string, options: Options = {}, access: Access = root): Promise<Summary & { paths: string[] }> {
  const { include = [], exclude = [], gitignore = false, skipHidden = false, ...rest } = options;
  const patterns = { include, exclude, gitignore, skipHidden };
  const paths: string[] = [];
  for await (const event of find(access, path, { ...EVERYTHING, ...rest, patterns }, new AbortController().signal)) {
    if (event.kind === "summary") return { ...event, paths };
    paths.push(...event.entries.map((entry) => entry.path.slice(path.length + 1)));
  }
  throw new Error("no summary");
}

function makeTree(directory: string): void {
  for (const path of ["src/deep/er", ".hidden", "node_modules/a", ".git/info", "empty"])
    mkdirSync(join(directory, path), { recursive: true });
  for (const path of ["a.ts", "src/b.ts", "src/b.js", "src/deep/er/c.ts", ".hidden/d.ts", "node_modules/a/e.ts", ".git/config"]) {
    writeFileSync(join(directory, path), "1234");
  }
  symlinkSync("src", join(directory, "link"));
  execFileSync("mkfifo", [join(directory, "src/pipe")]);
}

it("finds by globs, leaves out by globs, and follows no link", async () => {
  using directory = temporaryDirectory();
  makeTree(directory.path);
  const ofTypeScript = await found(directory.path, { include: ["*.ts"], exclude: ["node_modules"] });
  expect(ofTypeScript.paths).toEqual([".hidden/d.ts", "a.ts", "src/b.ts", "src/deep/er/c.ts"]);
  expect(ofTypeScript).toMatchObject({ matched: 4, unreadableCount: 0, unreadable: [] });
  expect((await found(directory.path, { include: ["src/*.{ts,js}"] })).paths).toEqual(["src/b.js", "src/b.ts"]);
  expect((await found(directory.path, { include: ["*.ts"], skipHidden: true, maxDepth: 2 })).paths).toEqual(["a.ts", "src/b.ts"]);
  expect((await found(directory.path, { include: ["link/**"] })).paths).toEqual([]);
});

it("finds the same as find(1)", async () => {
  using directory = temporaryDirectory();
  makeTree(directory.path);
  const options = ["-mindepth", "1", "-printf", "%P\\0"];
  const all = execFileSync("find", [directory.path, ...options])
    .toString()
    .split("\0")
    .slice(0, -1);
  const { paths, visited } = await found(directory.path);
  expect(paths.toSorted()).toEqual(all.toSorted());
  expect(visited).toBe(all.length);
});

it("finds by type, size and time", async () => {
  using directory = temporaryDirectory();
  makeTree(directory.path);
  expect((await found(directory.path, { kinds: ["symlink", "fifo"] })).paths).toEqual(["link", "src/pipe"]);
  truncateSync(join(directory.path, "src/b.ts"), 100);
  expect((await found(directory.path, { minSize: 100n, maxSize: 100n })).paths).toEqual(["src/b.ts"]);
  expect((await found(directory.path, { maxSize: 4n, include: ["src/**"] })).paths).toEqual(["src/b.js", "src/deep/er/c.ts"]);
  for (const [path, seconds] of [
    ["a.ts", 100.5],
    ["src/b.ts", 200],
    ["src/b.js", 99],
  ] as const) {
    utimesSync(join(directory.path, path), seconds, seconds);
  }
  const between = { modifiedSinceNs: 100_500_000_000n, modifiedBeforeNs: 200_000_000_000n };
  expect((await found(directory.path, between)).paths).toEqual(["a.ts"]);
});

it("leaves out what git ignores", async () => {
  using directory = temporaryDirectory();
  makeTree(directory.path);
  writeFileSync(join(directory.path, ".gitignore"), "node_modules/\n*.js\n");
  writeFileSync(join(directory.path, ".git/info/exclude"), ".hidden\na.ts\n");
  writeFileSync(join(directory.path, "src/.gitignore"), "/deep/er/*\n!b.js\n");
  expect((await found(directory.path, { gitignore: true, kinds: ["file"] })).paths).toEqual([
    ".gitignore",
    "src/.gitignore",
    "src/b.js",
    "src/b.ts",
  ]);
});

it("passes over ignore files that are links, pipes or endless", async () => {
  using directory = temporaryDirectory();
  for (const name of ["a", "b", "c"]) mkdirSync(join(directory.path, name));
  writeFileSync(join(directory.path, "rules"), "*\n");
  symlinkSync("rules", join(directory.path, ".gitignore"));
  execFileSync("mkfifo", [join(directory.path, "a/.gitignore")]);
  writeFileSync(join(directory.path, "b/.gitignore"), "");
  truncateSync(join(directory.path, "b/.gitignore"), 2 ** 40);
  const { paths, unreadable } = await found(directory.path, { gitignore: true, kinds: ["directory"] });
  expect(paths).toEqual(["a", "b", "c"]);
  expect(unreadable).toMatchObject([{ path: `${directory.path}/b/.gitignore`, reason: "EFBIG" }]);
});

it("counts what is beyond the limit", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 1000; index++) writeFileSync(join(directory.path, `${index}`), "");
  const { paths, matched, visited } = await found(directory.path, { maxResults: 10, include: ["*1*"] });
  expect(paths).toHaveLength(10);
  expect([matched, visited]).toEqual([271, 1000]);
});

it("names directories that the user may not read, at most 100", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 120; index++) {
    mkdirSync(join(directory.path, `${index}`));
    chmodSync(join(directory.path, `${index}`), 0o700);
  }
  const { paths, unreadable, unreadableCount } = await found(directory.path, {}, nobody);
  expect(paths).toHaveLength(120);
  expect(unreadableCount).toBe(120);
  expect(unreadable).toHaveLength(100);
  expect(unreadable[0]).toEqual({ path: `${directory.path}/0`, reason: "EACCES", message: "permission denied" });
});

it("finds names that are not UTF-8, and hides files of ours", async () => {
  using directory = temporaryDirectory();
  writeFileSync(Buffer.concat([Buffer.from(`${directory.path}/a`), Buffer.of(0xff), Buffer.from(".ts")]), "");
  writeFileSync(join(directory.path, ".picod-0123456789abcdef.tmp"), "");
  expect((await found(directory.path, { include: ["a?.ts", "*.tmp"] })).paths).toEqual(["a\uefff.ts"]);
  expect((await found(directory.path)).visited).toBe(1);
});

it("fails for what is no directory, and for malformed patterns", async () => {
  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, "file"), "");
  await expect(found(join(directory.path, "file"))).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(found(join(directory.path, "missing"))).rejects.toMatchObject({
    code: "ENOENT",
    path: `${directory.path}/missing`,
  });
  await expect(found(directory.path, { include: ["[a"] })).rejects.toMatchObject({ reason: "INVALID_ARGUMENT", message: /\[a/ });
});

it("stops when it is aborted, and closes everything", async () => {
  using directory = temporaryDirectory();
  for (let index = 0; index < 600; index++) mkdirSync(join(directory.path, `${index}/a`), { recursive: true });
  const before = readdirSync("/proc/self/fd").length;
  const abort = new AbortController();
  const finding = (async () => {
    for await (const _ of find(root, directory.path, EVERYTHING, abort.signal)) abort.abort(new Error("enough"));
  })();
  await expect(finding).rejects.toThrow("enough");
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});
