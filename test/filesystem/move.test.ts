import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { move } from "../../src/filesystem/move.js";
import type { RenameMode } from "../../src/os/rename.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { makeRandomTree } from "../helpers/random-tree.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { describeTree, differences } from "../helpers/tree.js";

const root = accessAs();
const nobody = accessAs("nobody");
const never = new AbortController().signal;
const doMove = (access: Access, from: string, to: string, mode: RenameMode = "replace", signal = never) =>
  move(access, from, to, mode, signal);

describe("within a file system", () => {
  it("is a rename, and makes missing parents", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    writeFileSync(at("file"), "x");
    symlinkSync("file", at("link"));
    mkdirSync(at("directory"));
    const { ino } = statSync(at("file"));
    expect(await doMove(root, at("file"), at("a/b/c"))).toMatchObject({ path: at("a/b/c"), kind: "file" });
    expect(statSync(at("a/b/c")).ino).toBe(ino);
    expect(await doMove(root, at("link"), at("a/link"))).toMatchObject({ symlinkTarget: "file" });
    await doMove(root, at("directory/"), at("a/directory/"));
    expect(readdirSync(directory.path)).toEqual(["a"]);
    expect(readdirSync(at("a"))).toEqual(["b", "directory", "link"]);
  });

  it("replaces, keeps what is there, or exchanges, as asked", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    for (const name of ["a", "b", "c"]) writeFileSync(at(name), name);
    mkdirSync(at("full/sub"), { recursive: true });
    mkdirSync(at("empty"));
    await doMove(root, at("a"), at("b"));
    expect(readFileSync(at("b"), "utf8")).toBe("a");
    await expect(doMove(root, at("b"), at("c"), "free")).rejects.toMatchObject({ code: "EEXIST", path: at("c") });
    await doMove(root, at("b"), at("full"), "exchange");
    expect([lstatSync(at("b")).isDirectory(), readFileSync(at("full"), "utf8")]).toEqual([true, "a"]);
    await doMove(root, at("b"), at("empty"));
    expect(readdirSync(at("empty"))).toEqual(["sub"]);
    await expect(doMove(root, at("c"), at("none"), "exchange")).rejects.toMatchObject({ code: "ENOENT" });
    linkSync(at("c"), at("d"));
    await doMove(root, at("c"), at("d"));
    expect(existsSync(at("c"))).toBe(false);
    await doMove(root, at("d"), at("d"));
    expect(readFileSync(at("d"), "utf8")).toBe("c");
  });

  it("refuses what rename(2) refuses, and takes back the parents it made", async () => {
    using directory = temporaryDirectory();
    using mounted = mountedTmpfs();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("a/b"), { recursive: true });
    writeFileSync(at("file"), "");
    const refused: [string, string, object, RenameMode?][] = [
      [at("a"), at("a/new/c"), { reason: "INVALID_ARGUMENT" }],
      [at("a/b"), at("a"), { reason: "INVALID_ARGUMENT" }, "exchange"],
      [at("a/b"), at("a"), { code: "ENOTEMPTY" }],
      [at("a"), at("file"), { code: "ENOTDIR", path: at("file") }],
      [at("file"), at("a"), { code: "EISDIR", path: at("a") }],
      [at("none"), at("new/parents/x"), { code: "ENOENT", path: at("none") }],
      [at("file/"), at("new/x"), { code: "ENOTDIR" }],
      [at("a/."), at("new/x"), { code: "EBUSY" }],
      [at("file"), `${mounted.path}/x`, { code: "EXDEV" }, "exchange"],
      [mounted.path, at("x"), { code: "EBUSY" }],
      ["/", at("x"), { reason: "ROOT_PROTECTED" }],
      [at("a"), "/", { reason: "ROOT_PROTECTED" }],
    ];
    writeFileSync(`${mounted.path}/x`, "");
    for (const [from, to, error, mode] of refused) await expect(doMove(root, from, to, mode), to).rejects.toMatchObject(error);
    expect(readdirSync(directory.path, { recursive: true })).toEqual(["a", "file", "a/b"]);
  });

  it("does what the user's own mv could: sticky and foreign directories", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    for (const name of ["sticky", "own", "foreign"]) mkdirSync(at(name));
    chmodSync(at("sticky"), 0o1777);
    chownSync(at("own"), 65534, 65534);
    for (const name of ["sticky/roots", "foreign/x", "own/mine"]) writeFileSync(at(name), "");
    for (const [from, code] of [
      ["sticky/roots", "EPERM"],
      ["foreign/x", "EACCES"],
    ] as const) {
      await expect(doMove(nobody, at(from), at("own/x"))).rejects.toMatchObject({ code });
    }
    await expect(doMove(nobody, at("own/mine"), at("sticky/roots"))).rejects.toMatchObject({ code: "EPERM" });
    await doMove(nobody, at("own/mine"), at("sticky/mine"));
    expect(readdirSync(at("sticky"))).toEqual(["mine", "roots"]);
  });
});

describe("across file systems", () => {
  it("moves a tree with all its attributes", async () => {
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    makeRandomTree(`${directory.path}/tree`, 6);
    const before = describeTree(`${directory.path}/tree`, { blocks: false });
    mkdirSync(`${other.path}/there`);
    await doMove(root, `${directory.path}/tree`, `${other.path}/there`);
    expect(readdirSync(directory.path)).toEqual([]);
    expect(differences(describeTree(`${other.path}/there`, { blocks: false }), before)).toEqual([]);
    expect(readdirSync(other.path)).toEqual(["there"]);
  });

  it("replaces a file or an empty directory only, and nothing with `free`", async () => {
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    const [here, there] = [(name: string) => `${directory.path}/${name}`, (name: string) => `${other.path}/${name}`];
    for (const path of [here("file"), there("file")]) writeFileSync(path, path);
    for (const path of [here("full/x"), there("full/x")]) mkdirSync(path, { recursive: true });
    const refused: [string, string, string, RenameMode?][] = [
      ["full", "full", "ENOTEMPTY"],
      ["full", "file", "ENOTDIR"],
      ["file", "full", "EISDIR"],
      ["file", "file", "EEXIST", "free"],
      ["full", "full", "EEXIST", "free"],
    ];
    for (const [from, to, code, mode] of refused) {
      await expect(doMove(root, here(from), there(to), mode)).rejects.toMatchObject({ code, path: there(to) });
    }
    await doMove(root, here("file"), there("file"));
    expect(readFileSync(there("file"), "utf8")).toBe(here("file"));
    expect(readdirSync(directory.path)).toEqual(["full"]);
    expect(readdirSync(other.path)).toEqual(["file", "full"]);
  });

  it("leaves everything as it was when the disk is full, it is cancelled, or the original could not be removed", async () => {
    using directory = temporaryDirectory();
    using other = mountedTmpfs("size=4m");
    chmodSync(other.path, 0o777);
    const source = `${directory.path}/source`;
    mkdirSync(`${source}/sub/mounted`, { recursive: true });
    for (const name of ["1", "sub/2"]) writeFileSync(`${source}/${name}`, randomBytes(1_000_000));
    const to = `${other.path}/new/there`;
    await expect(doMove(nobody, source, to)).rejects.toMatchObject({ code: "EACCES", path: source });
    chmodSync(directory.path, 0o777);
    await expect(doMove(nobody, source, to)).rejects.toMatchObject({ code: "EACCES", path: `${source}/1` });
    chmodSync(directory.path, 0o1777);
    await expect(doMove(nobody, source, to)).rejects.toMatchObject({ code: "EPERM", path: source });
    await expect(doMove(root, source, to, "replace", AbortSignal.timeout(1))).rejects.toThrow(/aborted/);
    execFileSync("mount", ["--bind", `${source}/sub`, `${source}/sub/mounted`]);
    try {
      await expect(doMove(root, source, to)).rejects.toMatchObject({ code: "EBUSY", path: `${source}/sub/mounted` });
    } finally {
      execFileSync("umount", ["--lazy", `${source}/sub/mounted`]);
    }
    writeFileSync(`${source}/sub/3`, randomBytes(4_000_000));
    await expect(doMove(root, source, to)).rejects.toMatchObject({ code: "ENOSPC", path: `${to}/sub/3` });
    expect(readdirSync(other.path)).toEqual([]);
    expect(readdirSync(source, { recursive: true }).toSorted()).toEqual(["1", "sub", "sub/2", "sub/3", "sub/mounted"]);
  });
});
