import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { makeDirectory } from "../../src/filesystem/make-directory.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs, remountReadOnly } from "../helpers/mounted-tmpfs.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();
const nobody = accessAs("nobody");
const mode = (path: string) => statSync(path).mode & 0o7777;
const open = () => readdirSync("/proc/self/fd").length;

it("makes a directory and its parents, which belong to the acting user; again it is there already", () => {
  using directory = temporaryDirectory();
  chmodSync(directory.path, 0o777);
  const path = `${directory.path}/a/b/c`;
  const before = open();
  expect(makeDirectory(nobody, path)).toMatchObject({ created: true, entry: { path, kind: "directory", owner: "nobody" } });
  for (const made of ["a", "a/b", "a/b/c"])
    expect(statSync(`${directory.path}/${made}`)).toMatchObject({ uid: 65534, gid: 65534 });
  for (const again of [path, `${path}/`, `${path}/.`, `${path}/..`, "/"])
    expect(makeDirectory(nobody, again).created).toBe(false);
  expect(makeDirectory(nobody, `${directory.path}/x/./`)).toMatchObject({ created: true });
  expect(open()).toBe(before);
});

it("sets the mode exactly, of the directory alone, and only when it makes it", () => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/parent/itself`;
  const umask = process.umask(0o027);
  makeDirectory(access, path, { mode: 0o1777 });
  process.umask(umask);
  expect([mode(path), mode(`${directory.path}/parent`)]).toEqual([0o1777, 0o750]);
  makeDirectory(access, path, { mode: 0o700 });
  expect(mode(path)).toBe(0o1777);
  makeDirectory(access, `${directory.path}/none`, { mode: 0 });
  expect(mode(`${directory.path}/none`)).toBe(0);
});

it("inherits the group of a set-group directory", () => {
  using directory = temporaryDirectory();
  chownSync(directory.path, 0, 1234);
  chmodSync(directory.path, 0o2777);
  makeDirectory(nobody, `${directory.path}/a/b`);
  for (const made of ["a", "a/b"]) {
    expect(statSync(`${directory.path}/${made}`)).toMatchObject({ uid: 65534, gid: 1234 });
    expect(mode(`${directory.path}/${made}`) & 0o2000).toBe(0o2000);
  }
});

it("refuses a name that is taken", () => {
  using directory = temporaryDirectory();
  mkdirSync(`${directory.path}/directory`);
  writeFileSync(`${directory.path}/file`, "");
  symlinkSync("directory", `${directory.path}/link`);
  symlinkSync("nothing", `${directory.path}/dangling`);
  symlinkSync("loop", `${directory.path}/loop`);
  for (const name of ["directory", "link", "file", "dangling"]) {
    expect(() => makeDirectory(access, `${directory.path}/${name}`, { mustNotExist: true })).toThrow(
      expect.objectContaining({ reason: "ALREADY_EXISTS" }),
    );
  }
  expect(makeDirectory(access, `${directory.path}/link`).created).toBe(false);
  const kinds = { file: "a file", dangling: "a symlink", loop: "a symlink" };
  for (const [name, kind] of Object.entries(kinds)) {
    expect(() => makeDirectory(access, `${directory.path}/${name}`)).toThrow(`${directory.path}/${name}: it is ${kind}`);
  }
  expect(existsSync(`${directory.path}/nothing`)).toBe(false);
});

it.each([
  ["file/below", "ENOTDIR"],
  ["loop/below", "ELOOP"],
  [`new/${"x".repeat(256)}`, "ENAMETOOLONG"],
])("%s is %s, and no parent is left", (name, code) => {
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/file`, "");
  symlinkSync("loop", `${directory.path}/loop`);
  const path = `${directory.path}/${name}`;
  const before = open();
  expect(() => makeDirectory(access, path)).toThrow(expect.objectContaining({ code, path }));
  expect(readdirSync(directory.path)).toEqual(["file", "loop"]);
  expect(open()).toBe(before);
});

it("has no more rights than the user", () => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/new`;
  expect(() => makeDirectory(nobody, path)).toThrow(expect.objectContaining({ code: "EACCES", path }));
  using readOnly = mountedTmpfs();
  remountReadOnly(readOnly);
  expect(() => makeDirectory(access, `${readOnly.path}/a/b`)).toThrow(expect.objectContaining({ code: "EROFS" }));
  expect(makeDirectory(access, readOnly.path).created).toBe(false);
});

it("undoes the parents when the file system is full", () => {
  using full = mountedTmpfs("nr_inodes=4");
  // The root of the file system and three more.
  expect(() => makeDirectory(access, `${full.path}/a/b/c/d`)).toThrow(expect.objectContaining({ code: "ENOSPC" }));
  expect(readdirSync(full.path)).toEqual([]);
  expect(makeDirectory(access, `${full.path}/a/b/c`).created).toBe(true);
});

it("stays inside the root", () => {
  using directory = temporaryDirectory();
  mkdirSync(`${directory.path}/root`);
  symlinkSync("/../outside", `${directory.path}/root/link`);
  const confined = accessAs("root", `${directory.path}/root`);
  makeDirectory(confined, "/../../made");
  expect(() => makeDirectory(confined, "/link")).toThrow(expect.objectContaining({ reason: "ALREADY_EXISTS" }));
  expect(readdirSync(directory.path)).toEqual(["root"]);
  expect(readdirSync(`${directory.path}/root`)).toEqual(["link", "made"]);
});

it("makes a path of a thousand directories", () => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/${"a/".repeat(1_000)}`;
  const startedAt = performance.now();
  expect(makeDirectory(access, path).created).toBe(true);
  expect(performance.now() - startedAt).toBeLessThan(1_000);
});
