import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import type { Access } from "../../src/filesystem/access.js";
import { type CopyOptions, copy } from "../../src/filesystem/copy.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { makeRandomTree } from "../helpers/random-tree.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { describeTree, differences } from "../helpers/tree.js";

const root = accessAs();
const nobody = accessAs("nobody");
const never = new AbortController().signal;
const doCopy = (access: Access, from: string, to: string, options: CopyOptions = {}, signal = never) =>
  copy(access, from, to, options, signal);
const openDescriptors = () => readdirSync("/proc/self/fd").length;
const AS_NOBODY = ["--reuid=65534", "--regid=65534", "--clear-groups"];

describe("a tree", () => {
  it.each([1, 2, 3])("is copied as cp -a does (seed %i)", async (seed) => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    makeRandomTree(source, seed);
    const before = describeTree(source);
    const descriptors = openDescriptors();
    const { entry, entries } = await doCopy(root, source, `${directory.path}/new/parents/copy`);
    execFileSync("cp", ["-a", source, `${directory.path}/reference`]);
    expect(differences(describeTree(`${directory.path}/new/parents/copy`), describeTree(`${directory.path}/reference`))).toEqual(
      [],
    );
    expect(differences(describeTree(source), before)).toEqual([]);
    expect(entry).toMatchObject({ kind: "directory", path: `${directory.path}/new/parents/copy` });
    expect(Number(entries)).toBe(before.length);
    expect(readdirSync(`${directory.path}/new/parents`)).toEqual(["copy"]);
    expect(openDescriptors()).toBe(descriptors);
  });

  it("is copied as cp -a does by a user who is not root, who cannot keep owners", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    makeRandomTree(source, 4, { privileged: false });
    execFileSync("sh", ["-c", `find ${source} -type f -size -9 | head -9 | xargs -d '\\n' chown -h 65534`]);
    execFileSync("chmod", ["-R", "a+rX", source]);
    chmodSync(directory.path, 0o777);
    await doCopy(nobody, source, `${directory.path}/copy`);
    execFileSync("setpriv", [...AS_NOBODY, "cp", "-a", source, `${directory.path}/reference`]);
    expect(differences(describeTree(`${directory.path}/copy`), describeTree(`${directory.path}/reference`))).toEqual([]);
  });

  it("is copied although its owner may not search it, when it is empty", async () => {
    using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    const source = `${directory.path}/source`;
    execFileSync("setpriv", [...AS_NOBODY, "sh", "-c", `mkdir -p ${source}/below && chmod 644 ${source}/below`]);
    for (const path of ["source", "source/below"]) {
      await doCopy(nobody, `${directory.path}/${path}`, `${directory.path}/copy`);
      execFileSync("setpriv", [...AS_NOBODY, "cp", "-a", `${directory.path}/${path}`, `${directory.path}/reference`]);
      expect(differences(describeTree(`${directory.path}/copy`), describeTree(`${directory.path}/reference`))).toEqual([]);
      execFileSync("rm", ["-r", `${directory.path}/copy`, `${directory.path}/reference`]);
    }
  });

  it.each(["0", "311"])(
    "is merged into a directory that may not be read, as far as that may be written (mode %s)",
    async (mode) => {
      using directory = temporaryDirectory();
      chmodSync(directory.path, 0o777);
      const asNobody = (script: string) => execFileSync("setpriv", [...AS_NOBODY, "sh", "-c", script], { cwd: directory.path });
      asNobody("mkdir empty full copy reference && echo content > full/file");
      for (const source of mode === "0" ? ["empty"] : ["empty", "full"]) {
        asNobody(`chmod ${mode} copy reference`);
        await doCopy(nobody, `${directory.path}/${source}`, `${directory.path}/copy`);
        asNobody(`cp -rT ${source} reference`);
      }
      // Of the directory itself: cp touches it to set its mode, and making a file touches it at another moment.
      const described = (name: string) => describeTree(`${directory.path}/${name}`, { times: false });
      expect(described("copy")).toEqual(described("reference"));
    },
  );

  it("is copied to another file system, with what of it can be kept there", async () => {
    using directory = temporaryDirectory();
    using other = mountedTmpfs();
    makeRandomTree(`${directory.path}/source`, 5);
    await doCopy(root, `${directory.path}/source`, `${other.path}/there`);
    await doCopy(root, `${other.path}/there`, `${directory.path}/back`);
    const original = describeTree(`${directory.path}/source`, { blocks: false });
    for (const path of [`${other.path}/there`, `${directory.path}/back`]) {
      expect(differences(describeTree(path, { blocks: false }), original)).toEqual([]);
    }
  });

  it("of great depth needs few descriptors", async () => {
    using directory = temporaryDirectory();
    const script = "mkdir top && cd top && for i in $(seq 400); do mkdir d && cd d && echo $i > file; done";
    execFileSync("sh", ["-c", script], { cwd: directory.path });
    const { entries } = await doCopy(root, `${directory.path}/top`, `${directory.path}/copy`);
    expect(entries).toBe(801n);
    expect(differences(describeTree(`${directory.path}/copy`), describeTree(`${directory.path}/top`))).toEqual([]);
  });

  it("keeps FIFOs and leaves out sockets and what is not finished", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    mkdirSync(source);
    execFileSync("mkfifo", [`${source}/fifo`]);
    writeFileSync(`${source}/.picod-0123456789abcdef.tmp`, "half");
    const server = createServer().listen(`${source}/socket`);
    await once(server, "listening");
    await doCopy(root, source, `${directory.path}/copy`);
    server.close();
    expect(readdirSync(`${directory.path}/copy`)).toEqual(["fifo"]);
    expect(lstatSync(`${directory.path}/copy/fifo`).isFIFO()).toBe(true);
  });

  it("keeps names that are not UTF-8, access lists, and times before 1970", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    mkdirSync(source);
    writeFileSync(Buffer.from(`${source}/\xff`, "latin1"), "raw");
    writeFileSync(`${source}/old`, "");
    execFileSync("touch", ["-d", "1960-01-01 00:00:00.123456789", `${source}/old`]);
    // The access list "u::rw- u:1234:r-- g::--- m::r-- o::---", as the kernel keeps it.
    const list = "0x0200000001000600ffffffff02000400d204000004000000ffffffff10000400ffffffff20000000ffffffff";
    execFileSync("setfattr", ["-n", "system.posix_acl_access", "-v", list, `${source}/old`]);
    await doCopy(root, source, `${directory.path}/copy`);
    execFileSync("cp", ["-a", source, `${directory.path}/reference`]);
    expect(readdirSync(`${directory.path}/copy`, { encoding: "buffer" })).toEqual(readdirSync(source, { encoding: "buffer" }));
    const attributes = (path: string) => execFileSync("sh", ["-c", "stat -c '%a %y' old; getfattr -d -m - old"], { cwd: path });
    expect(attributes(`${directory.path}/copy`).toString()).toBe(attributes(`${directory.path}/reference`).toString());
  });
});

describe("a single entry", () => {
  it("is copied with its attributes, a link as a link", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    writeFileSync(at("file"), "content");
    chmodSync(at("file"), 0o4751);
    symlinkSync("file", at("link"));
    expect(await doCopy(root, at("file"), at("a/b/copy"))).toMatchObject({ entries: 1n, bytes: 7n, entry: { mode: 0o4751 } });
    expect(await doCopy(root, at("link"), at("a/link"))).toMatchObject({
      entries: 1n,
      bytes: 0n,
      entry: { symlinkTarget: "file" },
    });
    expect(statSync(at("a/b/copy"), { bigint: true }).mtimeNs).toBe(statSync(at("file"), { bigint: true }).mtimeNs);
    expect(readlinkSync(at("a/link"))).toBe("file");
    expect(readdirSync(at("a/b"))).toEqual(["copy"]);
  });

  it("of /proc is read to wherever it ends", async () => {
    using directory = temporaryDirectory();
    await doCopy(root, "/proc/kallsyms", `${directory.path}/copy`);
    expect(readFileSync(`${directory.path}/copy`).equals(readFileSync("/proc/kallsyms"))).toBe(true);
  });

  it("replaces a file, a link itself, and one's own write-protected file", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    chmodSync(directory.path, 0o777);
    writeFileSync(at("source"), "new");
    writeFileSync(at("target"), "old");
    symlinkSync("target", at("link"));
    writeFileSync(at("protected"), "old", { mode: 0o444 });
    chownSync(at("protected"), 65534, 65534);
    for (const name of ["link", "protected"]) await doCopy(nobody, at("source"), at(name));
    expect(readFileSync(at("target"), "utf8")).toBe("old");
    expect(lstatSync(at("link")).isFile()).toBe(true);
    expect(readFileSync(at("protected"), "utf8")).toBe("new");
    expect(readdirSync(directory.path).length).toBe(4);
  });

  it("is written into a device, a file of several names, a mount point, and another's file in a directory that is not ours", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    writeFileSync(at("source"), "new");
    await doCopy(root, at("source"), "/dev/null");
    expect(lstatSync("/dev/null").isCharacterDevice()).toBe(true);
    for (const name of ["one", "mounted", "shared"]) writeFileSync(at(name), "old and long");
    linkSync(at("one"), at("two"));
    chmodSync(at("shared"), 0o666);
    await doCopy(root, at("source"), at("one"));
    await doCopy(nobody, at("source"), at("shared"));
    execFileSync("mount", ["--bind", at("mounted"), at("mounted")]);
    try {
      await doCopy(root, at("source"), at("mounted"));
    } finally {
      execFileSync("umount", ["--lazy", at("mounted")]);
    }
    for (const name of ["one", "two", "mounted", "shared"]) expect(readFileSync(at(name), "utf8")).toBe("new");
    expect(statSync(at("two")).nlink).toBe(2);
    expect(readdirSync(directory.path).length).toBe(5);
  });
});

describe("holes", () => {
  it("of 10 GiB take neither space nor time", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/sparse`;
    writeFileSync(source, "begin");
    truncateSync(source, 10 * 2 ** 30);
    const began = performance.now();
    const { bytes } = await doCopy(root, source, `${directory.path}/copy`);
    expect(performance.now() - began).toBeLessThan(2000);
    expect(bytes).toBe(10n * 2n ** 30n);
    expect(statSync(`${directory.path}/copy`)).toMatchObject({ size: 10 * 2 ** 30, blocks: statSync(source).blocks });
  });
});

describe("a directory that exists", () => {
  it("is merged into: files are replaced, what else is in it stays, as it does itself", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    for (const name of ["source/both", "source/only", "target/both"]) mkdirSync(at(name), { recursive: true });
    for (const name of ["source/file", "source/both/x", "source/only/z"]) writeFileSync(at(name), "new");
    for (const name of ["target/file", "target/stays", "target/both/y"]) writeFileSync(at(name), "old");
    linkSync(at("source/file"), at("source/only/linked"));
    chmodSync(at("source"), 0o700);
    chmodSync(at("target"), 0o1777);
    const { entries } = await doCopy(root, at("source"), at("target"));
    expect(entries).toBe(7n);
    expect(readdirSync(at("target"), { recursive: true }).toSorted()).toEqual(
      ["both", "both/x", "both/y", "file", "only", "only/linked", "only/z", "stays"].toSorted(),
    );
    expect(readFileSync(at("target/file"), "utf8")).toBe("new");
    expect(statSync(at("target/file")).ino).toBe(statSync(at("target/only/linked")).ino);
    expect(statSync(at("target")).mode & 0o7777).toBe(0o1777);
    // Again: all of it is there already.
    await doCopy(root, at("source"), at("target"));
    expect(statSync(at("target/file")).nlink).toBe(2);
  });

  it("is refused where a file and a directory meet, or the name must be free", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("directory/sub"), { recursive: true });
    writeFileSync(at("file"), "");
    mkdirSync(at("target"));
    writeFileSync(at("target/sub"), "");
    const refused: [string, string, string, CopyOptions?][] = [
      ["directory", "file", "ENOTDIR"],
      ["file", "directory", "EISDIR"],
      ["directory", "target", "ENOTDIR"],
      ["file", "x/", "ENOTDIR"],
      ["file/", "x", "ENOTDIR"],
      ["none", "new/parents/x", "ENOENT"],
      ["directory", "target", "EEXIST", { mustNotExist: true }],
      ["file", "target/sub", "EEXIST", { mustNotExist: true }],
    ];
    for (const [from, to, code, options] of refused) {
      await expect(doCopy(root, at(from), at(to), options)).rejects.toMatchObject({ code, path: expect.stringContaining("/") });
    }
    expect(readdirSync(directory.path)).toEqual(["directory", "file", "target"]);
  });

  it("is not copied into or onto itself", async () => {
    using directory = temporaryDirectory();
    const at = (name: string) => `${directory.path}/${name}`;
    mkdirSync(at("a/b"), { recursive: true });
    symlinkSync("a/b", at("link"));
    writeFileSync(at("file"), "content");
    linkSync(at("file"), at("same"));
    for (const [from, to] of [
      ["a", "a"],
      ["a", "a/b"],
      ["a", "a/new/parents/c"],
      ["a", "link/c"],
      ["a/b/..", "a/c"],
      ["file", "same"],
    ] as const) {
      await expect(doCopy(root, at(from), at(to)), `${from} to ${to}`).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    }
    expect(readdirSync(at("a"), { recursive: true })).toEqual(["b"]);
    expect(readFileSync(at("file"), "utf8")).toBe("content");
  });
});

describe("what goes wrong is undone", () => {
  it("when the disk is full", async () => {
    using directory = temporaryDirectory();
    using small = mountedTmpfs("size=2m");
    chmodSync(small.path, 0o777);
    const source = `${directory.path}/source`;
    mkdirSync(`${source}/a/b`, { recursive: true });
    for (const name of ["a/1", "a/b/2", "c"]) writeFileSync(`${source}/${name}`, randomBytes(1_000_000));
    chmodSync(`${source}/a/b`, 0o555);
    chmodSync(`${source}/a`, 0o555);
    for (const access of [root, nobody]) {
      const path = expect.stringMatching(`^${small.path}/new/copy`);
      await expect(doCopy(access, source, `${small.path}/new/copy`)).rejects.toMatchObject({ code: "ENOSPC", path });
      expect(readdirSync(small.path)).toEqual([]);
    }
    mkdirSync(`${small.path}/merged/a`, { recursive: true });
    writeFileSync(`${small.path}/merged/c`, "old");
    await expect(doCopy(root, source, `${small.path}/merged`)).rejects.toMatchObject({ code: "ENOSPC" });
    expect(readFileSync(`${small.path}/merged/c`, "utf8")).toBe("old");
    expect(readdirSync(small.path, { recursive: true }).filter((name) => String(name).includes(".picod"))).toEqual([]);
  });

  it("when something in the middle may not be read, or made", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    chmodSync(directory.path, 0o777);
    mkdirSync(`${source}/a/b`, { recursive: true });
    for (const name of ["a/b/1", "a/b/2", "c"]) writeFileSync(`${source}/${name}`, "x");
    chmodSync(`${source}/a`, 0o555);
    chmodSync(`${source}/a/b/2`, 0o600);
    await expect(doCopy(nobody, source, `${directory.path}/copy`)).rejects.toMatchObject({
      code: "EACCES",
      path: `${source}/a/b/2`,
    });
    chmodSync(`${source}/a/b/2`, 0o644);
    chmodSync(`${source}/a/b`, 0o700);
    await expect(doCopy(nobody, source, `${directory.path}/copy`)).rejects.toMatchObject({
      code: "EACCES",
      path: `${source}/a/b`,
    });
    chmodSync(`${source}/a/b`, 0o755);
    execFileSync("mknod", [`${source}/device`, "c", "1", "3"]);
    await expect(doCopy(nobody, source, `${directory.path}/copy`)).rejects.toMatchObject({
      code: "EPERM",
      path: `${directory.path}/copy/device`,
    });
    expect(readdirSync(directory.path)).toEqual(["source"]);
  });

  it("when no descriptors are left", async () => {
    using directory = temporaryDirectory();
    const deep = Array.from({ length: 100 }, (_, index) => index).join("/");
    mkdirSync(`${directory.path}/source/${deep}`, { recursive: true });
    writeFileSync(`${directory.path}/source/${deep}/file`, "x");
    const limit = (soft: string) => execFileSync("prlimit", ["--pid", String(process.pid), `--nofile=${soft}:`]);
    const old = execFileSync("prlimit", ["--pid", String(process.pid), "--nofile", "-o", "SOFT", "--noheadings"])
      .toString()
      .trim();
    const taken: number[] = [];
    limit(String(Math.max(...readdirSync("/proc/self/fd").map(Number)) + 100));
    try {
      expect(() => {
        for (;;) taken.push(openSync("/dev/null", "r"));
      }).toThrow(/EMFILE/);
      for (const fd of taken.splice(0, 80)) closeSync(fd);
      await expect(doCopy(root, `${directory.path}/source`, `${directory.path}/a/copy`)).rejects.toMatchObject({
        code: "EMFILE",
      });
    } finally {
      for (const fd of taken) closeSync(fd);
      limit(old);
    }
    expect(readdirSync(directory.path)).toEqual(["source"]);
  });

  it("when the caller cancels", async () => {
    using directory = temporaryDirectory();
    const source = `${directory.path}/source`;
    mkdirSync(source);
    for (let index = 0; index < 300; index++) writeFileSync(`${source}/${index}`, randomBytes(100_000));
    writeFileSync(`${source}/large`, randomBytes(50_000_000));
    const descriptors = openDescriptors();
    for (const afterMs of [0, 5, 20, 60]) {
      await expect(doCopy(root, source, `${directory.path}/new/copy`, {}, AbortSignal.timeout(afterMs))).rejects.toThrow(
        /aborted/,
      );
      expect(readdirSync(directory.path)).toEqual(["source"]);
    }
    expect(openDescriptors()).toBe(descriptors);
  });
});

describe("the acting user", () => {
  it("copies what it may read to where it may write, and owns the copy", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/open`);
    chmodSync(`${directory.path}/open`, 0o777);
    writeFileSync(`${directory.path}/file`, "x");
    writeFileSync(`${directory.path}/secret`, "x", { mode: 0o600 });
    await doCopy(nobody, `${directory.path}/file`, `${directory.path}/open/copy`);
    expect(statSync(`${directory.path}/open/copy`)).toMatchObject({ uid: 65534, gid: 65534 });
    const copies = [
      ["secret", "open/x"],
      ["file", "x"],
    ];
    for (const [from, to] of copies) {
      await expect(doCopy(nobody, `${directory.path}/${from}`, `${directory.path}/${to}`)).rejects.toMatchObject({
        code: "EACCES",
      });
    }
    expect(readdirSync(`${directory.path}/open`)).toEqual(["copy"]);
  });

  it("stays in its root", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/root/tree`, { recursive: true });
    writeFileSync(`${directory.path}/outside`, "outside");
    symlinkSync("../outside", `${directory.path}/root/relative`);
    symlinkSync("..", `${directory.path}/root/up`);
    writeFileSync(`${directory.path}/root/tree/file`, "x");
    const confined = accessAs("root", `${directory.path}/root`);
    await doCopy(confined, "/tree", "/up/../../copy");
    await doCopy(confined, "/tree/file", "/relative");
    await expect(doCopy(confined, "/up/outside", "/stolen")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(doCopy(confined, "/", "/tree/all")).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(readdirSync(directory.path)).toEqual(["outside", "root"]);
    expect(readFileSync(`${directory.path}/outside`, "utf8")).toBe("outside");
    expect(existsSync(`${directory.path}/root/copy/file`)).toBe(true);
  });
});
