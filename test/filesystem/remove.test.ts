import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { type RemoveOptions, remove } from "../../src/filesystem/remove.js";
import { makeDeep } from "../helpers/deep-directory.js";
import { eventually } from "../helpers/eventually.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs, remountReadOnly } from "../helpers/mounted-tmpfs.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();
const nobody = accessAs("nobody");
const open = () => readdirSync("/proc/self/fd").length;
const recursive = { recursive: true };

function removing(as: Access, path: string, options: RemoveOptions = {}, signal = new AbortController().signal) {
  return remove(as, path, options, signal);
}

describe("Remove", () => {
  it("removes a file, an empty directory, and a link instead of what it points to", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "");
    mkdirSync(`${directory.path}/empty`);
    mkdirSync(`${directory.path}/full/below`, { recursive: true });
    symlinkSync("full", `${directory.path}/link`);
    execFileSync("mkfifo", [`${directory.path}/pipe`]);
    for (const name of ["file", "empty/", "link", "pipe"]) expect(await removing(access, `${directory.path}/${name}`)).toBe(1);
    symlinkSync("full", `${directory.path}/link`);
    expect(await removing(access, `${directory.path}/link`, recursive)).toBe(1);
    expect(readdirSync(directory.path)).toEqual(["full"]);
    await expect(removing(access, `${directory.path}/full`)).rejects.toMatchObject({ code: "ENOTEMPTY" });
    expect(await removing(access, `${directory.path}/full`, recursive)).toBe(2);
    expect(readdirSync(directory.path)).toEqual([]);
  });

  it("counts what was removed, names that are not UTF-8 included", async () => {
    using directory = temporaryDirectory();
    const top = `${directory.path}/top`;
    for (let index = 0; index < 300; index++) mkdirSync(`${top}/${index % 17}/${index}`, { recursive: true });
    for (let index = 0; index < 300; index += 3) writeFileSync(`${top}/${index % 17}/${index}/file`, "");
    writeFileSync(Buffer.concat([Buffer.from(`${top}/`), Buffer.of(0xff, 0xc3)]), "");
    mkdirSync(Buffer.concat([Buffer.from(`${top}/`), Buffer.of(0xfe)]));
    writeFileSync(Buffer.concat([Buffer.from(`${top}/`), Buffer.of(0xfe), Buffer.from("/x")]), "");
    symlinkSync("/", `${top}/root`);
    const before = open();
    expect(await removing(access, `${top}/`, recursive)).toBe(1 + 17 + 300 + 100 + 4);
    expect(readdirSync(directory.path)).toEqual([]);
    expect(open()).toBe(before);
  });

  it("takes what is missing for an error, or not", async () => {
    using directory = temporaryDirectory();
    for (const name of ["missing", "missing/below"]) {
      const path = `${directory.path}/${name}`;
      await expect(removing(access, path, recursive)).rejects.toMatchObject({ code: "ENOENT", path });
      for (const options of [{ missingOk: true }, { missingOk: true, recursive: true }])
        expect(await removing(access, path, options)).toBe(0);
    }
  });

  it.each([
    ["file/below", "ENOTDIR"],
    ["file/", "ENOTDIR"],
    ["link/", "ENOTDIR"],
    ["loop/below", "ELOOP"],
    ["x".repeat(256), "ENAMETOOLONG"],
  ])("%s is %s", async (name, code) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "");
    mkdirSync(`${directory.path}/directory`);
    symlinkSync("directory", `${directory.path}/link`);
    symlinkSync("loop", `${directory.path}/loop`);
    const path = `${directory.path}/${name}`;
    for (const options of [{}, recursive]) await expect(removing(access, path, options)).rejects.toMatchObject({ code, path });
    expect(readdirSync(directory.path).length).toBe(4);
  });

  it.each(["/", "//", "/.", "/..", "/tmp/..", "/proc/self/root", "/proc/self/root/."])("never removes %s", async (path) => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/tmp`);
    const confined = accessAs("root", directory.path);
    if (!path.startsWith("/proc")) {
      await expect(removing(confined, path, recursive)).rejects.toMatchObject({ reason: "ROOT_PROTECTED", metadata: { path } });
    }
    expect(readdirSync(directory.path)).toEqual(["tmp"]);
    // The link of /proc is no name of the root, and cannot be removed; behind it is the root.
    const refused = path.endsWith("root") ? { code: "EPERM" } : { reason: "ROOT_PROTECTED" };
    await expect(removing(access, path, {})).rejects.toMatchObject(refused);
  });

  it("refuses a path that ends in dots", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/a/b`, { recursive: true });
    for (const path of [`${directory.path}/a/b/..`, `${directory.path}/a/.`, `${directory.path}/a/./`]) {
      await expect(removing(access, path, recursive)).rejects.toMatchObject({ reason: "INVALID_PATH" });
    }
    expect(existsSync(`${directory.path}/a/b`)).toBe(true);
  });

  it("does not enter the root where it is mounted below", async () => {
    using directory = temporaryDirectory();
    const confined = accessAs("root", directory.path);
    mkdirSync(`${directory.path}/a/mounted`, { recursive: true });
    writeFileSync(`${directory.path}/a/file`, "");
    writeFileSync(`${directory.path}/precious`, "");
    execFileSync("mount", ["--bind", directory.path, `${directory.path}/a/mounted`]);
    try {
      await expect(removing(confined, "/a", recursive)).rejects.toMatchObject({
        reason: "ROOT_PROTECTED",
        metadata: { path: "/a/mounted" },
      });
      expect(readdirSync(directory.path)).toEqual(["a", "precious"]);
      expect(readdirSync(`${directory.path}/a`)).toEqual(["mounted"]);
    } finally {
      execFileSync("umount", ["--lazy", `${directory.path}/a/mounted`]);
    }
  });

  it("removes what it can, and names the first that it cannot", async () => {
    using directory = temporaryDirectory();
    const top = `${directory.path}/top`;
    for (const name of ["a", "kept", "kept/inner", "z"]) mkdirSync(`${top}/${name}`, { recursive: true });
    for (const name of ["a/1", "kept/file", "kept/inner/file", "z/1"]) writeFileSync(`${top}/${name}`, "");
    execFileSync("chown", ["-R", "nobody", directory.path]);
    chmodSync(`${top}/kept`, 0o555);
    await expect(removing(nobody, top, recursive)).rejects.toMatchObject({ code: "EACCES", path: `${top}/kept/file` });
    expect(readdirSync(top, { recursive: true }).sort()).toEqual(["kept", "kept/file", "kept/inner"]);
    chmodSync(`${top}/kept`, 0o755);
    expect(await removing(nobody, top, recursive)).toBe(4);
  });

  it("removes an empty directory that it may not read", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/top/closed`, { recursive: true });
    execFileSync("chown", ["-R", "nobody", directory.path]);
    chmodSync(`${directory.path}/top/closed`, 0);
    expect(await removing(nobody, `${directory.path}/top`, recursive)).toBe(2);
  });

  it("has no more rights than the user: sticky directories, others' directories, read-only mounts", async () => {
    using directory = temporaryDirectory();
    const sticky = `${directory.path}/sticky`;
    mkdirSync(sticky);
    chmodSync(sticky, 0o1777);
    writeFileSync(`${sticky}/roots`, "");
    writeFileSync(`${sticky}/own`, "");
    chownSync(`${sticky}/own`, 65534, 65534);
    await expect(removing(nobody, `${sticky}/roots`)).rejects.toMatchObject({ code: "EPERM" });
    expect(await removing(nobody, `${sticky}/own`)).toBe(1);
    await expect(removing(nobody, sticky, recursive)).rejects.toMatchObject({ code: "EPERM", path: `${sticky}/roots` });
    writeFileSync(`${directory.path}/file`, "");
    await expect(removing(nobody, `${directory.path}/file`)).rejects.toMatchObject({ code: "EACCES" });
    using readOnly = mountedTmpfs();
    mkdirSync(`${readOnly.path}/a/b`, { recursive: true });
    remountReadOnly(readOnly);
    await expect(removing(access, `${readOnly.path}/a`, recursive)).rejects.toMatchObject({
      code: "EROFS",
      path: `${readOnly.path}/a/b`,
    });
    await expect(removing(access, readOnly.path, recursive)).rejects.toMatchObject({ path: `${readOnly.path}/a/b` });
  });

  it("stays inside the root", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/root/in`, { recursive: true });
    mkdirSync(`${directory.path}/outside/kept`, { recursive: true });
    symlinkSync("/../outside", `${directory.path}/root/out`);
    symlinkSync(`${directory.path}/outside`, `${directory.path}/root/in/out`);
    const confined = accessAs("root", `${directory.path}/root`);
    await expect(removing(confined, "/out/kept", recursive)).rejects.toMatchObject({ code: "ENOENT" });
    await expect(removing(confined, "/../outside", recursive)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await removing(confined, "/in", recursive)).toBe(2);
    expect(existsSync(`${directory.path}/outside/kept`)).toBe(true);
  });

  it("frees the space of large files", async () => {
    using tmpfs = mountedTmpfs("size=200m");
    const blocks = () => Number(execFileSync("df", ["--output=used", "-k", tmpfs.path], { encoding: "utf8" }).split("\n")[1]);
    mkdirSync(`${tmpfs.path}/top`);
    for (let index = 0; index < 8; index++) execFileSync("fallocate", ["-l", "20M", `${tmpfs.path}/top/${index}`]);
    truncateSync(`${tmpfs.path}/top/0`, 2 ** 40);
    expect(blocks()).toBeGreaterThan(150_000);
    const before = open();
    expect(await removing(access, `${tmpfs.path}/top/0`)).toBe(1);
    expect(await removing(access, `${tmpfs.path}/top`, recursive)).toBe(8);
    await eventually("the space is free", () => blocks() < 1_000);
    expect(open()).toBe(before);
  });

  it("stops when the caller does", async () => {
    using directory = mountedTmpfs();
    for (let index = 0; index < 20_000; index++) writeFileSync(`${directory.path}/${index}`, "");
    const before = open();
    const cancel = new AbortController();
    const removal = removing(access, directory.path, recursive, cancel.signal);
    await eventually("it has begun", () => readdirSync(directory.path).length < 20_000);
    cancel.abort();
    await expect(removal).rejects.toThrow(/abort/);
    expect(readdirSync(directory.path).length).toBeGreaterThan(0);
    expect(open()).toBe(before);
  });

  it("goes five thousand levels deep", async () => {
    using tmpfs = mountedTmpfs();
    makeDeep(tmpfs.path, 5_000);
    const before = open();
    const startedAt = performance.now();
    expect(await removing(access, `${tmpfs.path}/d`, recursive)).toBe(5_000 + 4_999);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(readdirSync(tmpfs.path)).toEqual(["e"]);
    expect(open()).toBe(before);
  });

  it("removes a directory that others put files into", async () => {
    using directory = mountedTmpfs();
    const top = `${directory.path}/top`;
    mkdirSync(`${top}/a`, { recursive: true });
    for (let index = 0; index < 2_000; index++) writeFileSync(`${top}/a/${index}`, "");
    const removal = removing(access, top, recursive);
    await eventually("it has begun", () => readdirSync(`${top}/a`).length < 2_000);
    // Behind the names that were read already, in a directory that is read no more.
    writeFileSync(`${top}/late`, "");
    expect(await removal).toBeGreaterThanOrEqual(2_003);
    expect(existsSync(top)).toBe(false);
  });

  it("is not led out of the tree by one who swaps directories for links", { timeout: 60_000 }, async () => {
    using directory = mountedTmpfs();
    mkdirSync(`${directory.path}/outside/sub`, { recursive: true });
    for (const name of ["precious", "sub/precious"]) writeFileSync(`${directory.path}/outside/${name}`, "");
    symlinkSync(`${directory.path}/outside`, `${directory.path}/link`);
    mkdirSync(`${directory.path}/aside`);
    // Swaps each of the directories for a link and back, as fast as it can.
    const script = `
      const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
      const [base] = process.argv.slice(1);
      for (let round = 0; ; round++) {
        const name = base + "/top/" + (round % 4);
        try {
          renameSync(name, base + "/aside/" + (round % 4));
          symlinkSync(base + "/outside", name);
          unlinkSync(name);
          renameSync(base + "/aside/" + (round % 4), name);
        } catch {}
      }`;
    const renamer = spawn(process.execPath, ["-e", script, directory.path], { stdio: "ignore" });
    await once(renamer, "spawn");
    try {
      for (let round = 0; round < 200; round++) {
        for (const name of ["0", "1", "2", "3"]) {
          mkdirSync(`${directory.path}/next/${name}/sub`, { recursive: true });
          for (let index = 0; index < 5; index++) writeFileSync(`${directory.path}/next/${name}/sub/${index}`, "");
        }
        renameSync(`${directory.path}/next`, `${directory.path}/top`);
        // What the other puts back behind it keeps it; then there is more to remove.
        for (let left = true; left; left = existsSync(`${directory.path}/top`)) {
          await removing(access, `${directory.path}/top`, { recursive: true, missingOk: true }).catch((error) => {
            if (error.code !== "ENOTEMPTY") throw error;
          });
        }
      }
    } finally {
      renamer.kill("SIGKILL");
      await once(renamer, "exit");
    }
    expect(readdirSync(`${directory.path}/outside`, { recursive: true }).sort()).toEqual(["precious", "sub", "sub/precious"]);
    expect(statSync(`${directory.path}/link`).isDirectory()).toBe(true);
  });

  it("follows a directory that is moved away while it is deep in it no further than to its own place", async () => {
    using directory = mountedTmpfs();
    const chain = (levels: number) => `${directory.path}/top/${Array(levels).fill("d").join("/")}`;
    mkdirSync(chain(150), { recursive: true });
    for (let index = 0; index < 30_000; index++) writeFileSync(`${chain(150)}/${index}`, "");
    writeFileSync(`${chain(10)}/file`, "");
    mkdirSync(`${directory.path}/elsewhere`);
    writeFileSync(`${directory.path}/elsewhere/precious`, "");
    const removal = removing(access, `${directory.path}/top`, recursive);
    await eventually("it is deep below", () => readdirSync(chain(150)).length < 30_000);
    renameSync(chain(50), `${directory.path}/elsewhere/d`);
    await removal;
    expect(existsSync(`${directory.path}/top`)).toBe(false);
    expect(existsSync(`${directory.path}/elsewhere/precious`)).toBe(true);
  });
});
