import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import { stat } from "../../src/filesystem/stat.js";
import { FileWriter } from "../../src/filesystem/write-file.js";
import { eventually } from "../helpers/eventually.js";
import { accessAs, readWhole, writeWhole } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();
const nobody = accessAs("nobody");
const digest = (content: string) => createHash("sha256").update(content).digest("hex");
const mode = (path: string) => statSync(path).mode & 0o7777;

describe("a whole file", () => {
  it.each([0, 1, 65_536, 65_537, 3_000_001])("is stored with all its %i bytes", async (size) => {
    using directory = temporaryDirectory();
    const content = randomBytes(size);
    const { bytesWritten, entry } = await writeWhole(access, `${directory.path}/file`, content);
    expect([bytesWritten, entry.size]).toEqual([BigInt(size), BigInt(size)]);
    expect(readFileSync(`${directory.path}/file`).equals(content)).toBe(true);
  });

  it("is 0644 when it is new, whatever the umask, and keeps mode and owner of what it replaces", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const umask = process.umask(0o077);
    await writeWhole(access, path, "new");
    process.umask(umask);
    expect(mode(path)).toBe(0o644);
    chownSync(path, 1234, 5678);
    chmodSync(path, 0o4750);
    await writeWhole(access, path, "newer");
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 5678, size: 5 });
    expect(mode(path)).toBe(0o4750);
    await writeWhole(access, path, "newest", { mode: 0o600 });
    expect(mode(path)).toBe(0o600);
  });

  it("makes missing parents, which belong to the acting user", async () => {
    using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    await writeWhole(nobody, `${directory.path}/a/b/c`, "x");
    for (const path of ["a", "a/b", "a/b/c"]) expect(statSync(`${directory.path}/${path}`).uid).toBe(65534);
  });

  it("shows the old content until the new one is complete", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const writer = new FileWriter(access, path, {});
    await writer.write(Buffer.from("new "));
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(directory.path)).toEqual(["file"]);
    await writer.write(Buffer.from("content"));
    await writer.commit();
    writer.close();
    expect(readFileSync(path, "utf8")).toBe("new content");
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("leaves nothing behind when it is given up", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "old");
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (const path of ["file", "new/parents/file"]) {
      const writer = new FileWriter(access, `${directory.path}/${path}`, {});
      await writer.write(Buffer.from("half"));
      writer.close();
    }
    expect(readdirSync(directory.path)).toEqual(["file"]);
    expect(readFileSync(`${directory.path}/file`, "utf8")).toBe("old");
    await eventually("everything is closed", () => open() <= before);
  });

  it("keeps parents that somebody else has begun to use", async () => {
    using directory = temporaryDirectory();
    const writer = new FileWriter(access, `${directory.path}/a/b/file`, {});
    writeFileSync(`${directory.path}/a/other`, "");
    writer.close();
    expect(readdirSync(`${directory.path}/a`)).toEqual(["other"]);
  });

  it("goes through symbolic links, dangling ones too, and leaves them in place", async () => {
    using directory = temporaryDirectory();
    mkdirSync(`${directory.path}/d`);
    writeFileSync(`${directory.path}/d/target`, "old");
    symlinkSync("d/target", `${directory.path}/link`);
    symlinkSync(`${directory.path}/d/nothing`, `${directory.path}/dangling`);
    await writeWhole(access, `${directory.path}/link`, "through");
    await writeWhole(access, `${directory.path}/dangling`, "made");
    expect(readFileSync(`${directory.path}/d/target`, "utf8")).toBe("through");
    expect(readFileSync(`${directory.path}/d/nothing`, "utf8")).toBe("made");
    expect(readlinkSync(`${directory.path}/link`)).toBe("d/target");
  });

  it("keeps the other names of a file with hard links", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/one`, "old and long");
    linkSync(`${directory.path}/one`, `${directory.path}/two`);
    await writeWhole(access, `${directory.path}/one`, "new");
    expect(readFileSync(`${directory.path}/two`, "utf8")).toBe("new");
    expect(statSync(`${directory.path}/two`).nlink).toBe(2);
    expect(readdirSync(directory.path)).toEqual(["one", "two"]);
  });

  it("replaces a mount point in place", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/source`, "old and long");
    writeFileSync(`${directory.path}/mounted`, "");
    execFileSync("mount", ["--bind", `${directory.path}/source`, `${directory.path}/mounted`]);
    try {
      await writeWhole(access, `${directory.path}/mounted`, "new");
      expect(readFileSync(`${directory.path}/source`, "utf8")).toBe("new");
    } finally {
      execFileSync("umount", ["--lazy", `${directory.path}/mounted`]);
    }
  });

  it("replaces a program that is being executed", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/sleep`;
    copyFileSync("/bin/sleep", path);
    const child = spawn(path, ["1000"]);
    await once(child, "spawn");
    await eventually("it is executed", () => readlinkSync(`/proc/${child.pid}/exe`) === path);
    await writeWhole(access, path, "#!/bin/sh\n");
    expect(readFileSync(path, "utf8")).toBe("#!/bin/sh\n");
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it("writes to devices", async () => {
    await writeWhole(access, "/dev/null", "gone");
    expect(lstatSync("/dev/null").isCharacterDevice()).toBe(true);
  });

  it("is written whole by one of two writers at once", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const contents = ["a", "b", "c", "d"].map((letter) => letter.repeat(500_000));
    await Promise.all(contents.map((content) => writeWhole(access, path, content)));
    expect(contents).toContain(readFileSync(path, "utf8"));
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("survives a sync to disk", async () => {
    using directory = temporaryDirectory();
    await writeWhole(access, `${directory.path}/a/file`, "durable", { sync: true });
    expect(readFileSync(`${directory.path}/a/file`, "utf8")).toBe("durable");
  });
});

describe("what was announced", () => {
  it("is verified before the content becomes visible", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const refused: [object, string][] = [
      [{ sha256: digest("other") }, "CHECKSUM_MISMATCH"],
      [{ size: 4n }, "SIZE_MISMATCH"],
      [{ size: 2n }, "SIZE_MISMATCH"],
    ];
    for (const [options, reason] of refused)
      await expect(writeWhole(access, path, "new", options)).rejects.toMatchObject({ reason });
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(await writeWhole(access, path, "new", { size: 3n, sha256: digest("new") })).toMatchObject({ sha256: digest("new") });
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("is refused early when it cannot fit", () => {
    using directory = temporaryDirectory();
    const announce = () => new FileWriter(access, `${directory.path}/a/file`, { size: 2n ** 60n });
    expect(announce).toThrow(expect.objectContaining({ reason: "NO_SPACE" }));
    expect(readdirSync(directory.path)).toEqual([]);
  });

  it("holds only while the precondition does", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const mustNotExist = { precondition: { kind: "must-not-exist" as const } };
    const first = new FileWriter(access, path, mustNotExist);
    const second = new FileWriter(access, path, mustNotExist);
    await first.write(Buffer.from("first"));
    await second.write(Buffer.from("second"));
    await first.commit();
    await expect(second.commit()).rejects.toMatchObject({ reason: "ALREADY_EXISTS" });
    first.close();
    second.close();
    await expect(writeWhole(access, path, "third", mustNotExist)).rejects.toMatchObject({ reason: "ALREADY_EXISTS" });
    const { etag } = stat(access, path, false);
    await writeWhole(access, path, "second", { precondition: { kind: "etag", etag } });
    await expect(writeWhole(access, path, "third", { precondition: { kind: "etag", etag } })).rejects.toMatchObject({
      reason: "PRECONDITION_FAILED",
    });
    expect(readFileSync(path, "utf8")).toBe("second");
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });
});

describe("a patch", () => {
  it("changes the bytes from its offset on and nothing else", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "0123456789", { mode: 0o640 });
    const { ino } = statSync(path);
    await writeWhole(access, path, "abc", { offset: 4n });
    expect(readFileSync(path, "utf8")).toBe("0123abc789");
    await writeWhole(access, path, "xyz", { offset: 10n });
    expect(readFileSync(path, "utf8")).toBe("0123abc789xyz");
    expect([statSync(path).ino, mode(path)]).toEqual([ino, 0o640]);
  });

  it("begins a new file at 0 and is refused beyond the end", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    await expect(writeWhole(access, path, "x", { offset: 1n })).rejects.toMatchObject({ reason: "OFFSET_BEYOND_END" });
    await writeWhole(access, path, "abc", { offset: 0n });
    await expect(writeWhole(access, path, "x", { offset: 4n })).rejects.toMatchObject({ reason: "OFFSET_BEYOND_END" });
    expect(readFileSync(path, "utf8")).toBe("abc");
  });
});

describe("the acting user", () => {
  it("owns new files, and cannot write where its shell could not", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    await expect(writeWhole(nobody, path, "x")).rejects.toMatchObject({ code: "EACCES", path });
    chmodSync(directory.path, 0o777);
    await writeWhole(nobody, path, "x");
    expect(statSync(path)).toMatchObject({ uid: 65534, gid: 65534 });
    writeFileSync(`${directory.path}/roots`, "root's", { mode: 0o644 });
    await expect(writeWhole(nobody, `${directory.path}/roots`, "x")).rejects.toMatchObject({ code: "EACCES" });
    expect(readFileSync(`${directory.path}/roots`, "utf8")).toBe("root's");
  });

  it("writes a file it may write in a directory it may not", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/shared`;
    writeFileSync(path, "old and long", { mode: 0o600 });
    chmodSync(path, 0o666);
    await writeWhole(nobody, path, "new");
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path).uid).toBe(0);
  });

  it("writes another's file in a sticky directory without taking it over", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/shared`;
    chmodSync(directory.path, 0o1777);
    writeFileSync(path, "old and long");
    chmodSync(path, 0o666);
    await writeWhole(nobody, path, "new");
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path).uid).toBe(0);
    expect(readdirSync(directory.path)).toEqual(["shared"]);
  });
});

describe("what goes wrong", () => {
  it.each([
    ["a directory", (path: string) => mkdirSync(path)],
    ["a fifo", (path: string) => void execFileSync("mkfifo", [path])],
  ])("refuses %s", (kind, make) => {
    using directory = temporaryDirectory();
    make(`${directory.path}/it`);
    expect(() => new FileWriter(access, `${directory.path}/it`, {})).toThrow(`it is ${kind}`);
  });

  it.each(["/", "/tmp/", "/tmp/.", "/tmp/.."])("refuses the name %s", (path) => {
    expect(() => new FileWriter(access, path, {})).toThrow(/illegal operation on a directory/);
  });

  it("reports a loop of links, and a file where a directory is needed", () => {
    using directory = temporaryDirectory();
    symlinkSync("b", `${directory.path}/a`);
    symlinkSync("a", `${directory.path}/b`);
    writeFileSync(`${directory.path}/file`, "");
    expect(() => new FileWriter(access, `${directory.path}/a`, {})).toThrow(expect.objectContaining({ code: "ELOOP" }));
    expect(() => new FileWriter(access, `${directory.path}/file/x`, {})).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
    expect(() => new FileWriter(access, `${directory.path}/${"n".repeat(300)}`, {})).toThrow(
      expect.objectContaining({ code: "ENAMETOOLONG" }),
    );
  });

  it("keeps the old content when the disk is full", async () => {
    using directory = temporaryDirectory();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", directory.path]);
    try {
      const path = `${directory.path}/file`;
      writeFileSync(path, "old");
      await expect(writeWhole(access, path, Buffer.alloc(2_000_000))).rejects.toMatchObject({ code: "ENOSPC", path });
      expect(readFileSync(path, "utf8")).toBe("old");
      expect(readdirSync(directory.path)).toEqual(["file"]);
      await eventually(
        "the space is free again",
        () => Number(execFileSync("df", ["--output=used", "-k", directory.path]).toString().split("\n")[1]) < 100,
      );
      await expect(writeWhole(access, path, Buffer.alloc(2_000_000), { size: 2_000_000n })).rejects.toMatchObject({
        reason: "NO_SPACE",
      });
    } finally {
      execFileSync("umount", ["--lazy", directory.path]);
    }
  });

  it("names the path on a read-only file system", () => {
    using directory = temporaryDirectory();
    execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "none", directory.path]);
    try {
      const write = () => new FileWriter(access, `${directory.path}/file`, {});
      expect(write).toThrow(expect.objectContaining({ code: "EROFS", path: `${directory.path}/file` }));
    } finally {
      execFileSync("umount", ["--lazy", directory.path]);
    }
  });

  it("does not leave its root", async () => {
    using directory = temporaryDirectory();
    const root = `${directory.path}/root`;
    mkdirSync(root);
    symlinkSync(`${directory.path}/outside`, `${root}/absolute`);
    symlinkSync("../outside", `${root}/relative`);
    const confined = accessAs("root", root);
    await writeWhole(confined, "/../../inside", "a");
    await writeWhole(confined, "/relative", "b");
    await writeWhole(confined, "/absolute", "c");
    expect(existsSync(`${directory.path}/outside`)).toBe(false);
    expect(readFileSync(`${root}/inside`, "utf8")).toBe("a");
    expect(readFileSync(`${root}/outside`, "utf8")).toBe("b");
    expect((await readWhole(confined, "/absolute")).content.toString()).toBe("c");
  });

  it("reports a sparse file of any size without reading it", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/sparse`, "");
    truncateSync(`${directory.path}/sparse`, 2 ** 40);
    expect(stat(access, `${directory.path}/sparse`, false).size).toBe(2n ** 40n);
  });
});
