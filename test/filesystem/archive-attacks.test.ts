import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { WriteArchiveOptions } from "../../src/filesystem/write-archive.js";
import { unpack } from "../helpers/archives.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

interface Forged {
  readonly name: string;
  readonly type?: string;
  readonly link?: string;
  readonly content?: string | Buffer;
  /** As it is in the header; the length of the content by default. */
  readonly size?: string;
}

const access = accessAs();
const END = Buffer.alloc(1024);

/** An entry as nobody who means well would write it. */
function forge({ name, type = "0", link = "", content = "", size }: Forged): Buffer {
  const block = Buffer.alloc(512);
  const bytes = Buffer.from(content as string);
  block.write(name, 0, 100, "latin1");
  block.write("0000755\x000000000\x000000000\0", 100, "latin1");
  block.write(size ?? bytes.length.toString(8).padStart(11, "0"), 124, "latin1");
  block.write("00000000000\0        ", 136, "latin1");
  block.write(type, 156, "latin1");
  block.write(link, 157, 100, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

const archiveOf = (...entries: readonly Forged[]) => Buffer.concat([...entries.map(forge), END]);
const pax = (text: string): Forged => ({ name: "pax", type: "x", content: text });
const record = (key: string, value: string) => {
  const rest = ` ${key}=${value}\n`;
  const length = rest.length + String(rest.length + 3).length;
  return `${length}${rest}`;
};

async function reasonOf(archive: Buffer, options: WriteArchiveOptions = {}): Promise<string> {
  using temporary = temporaryDirectory();
  mkdirSync(join(temporary.path, "outside"));
  const results: string[] = [];
  for (const atomic of [false, true]) {
    const to = join(temporary.path, "to");
    const error = await unpack(access, to, archive, { atomic, ...options }).then(
      () => ({ reason: "none" }),
      (thrown) => thrown,
    );
    results.push(error.reason ?? error.code ?? String(error));
    if (atomic && error.reason !== "none") expect(existsSync(to)).toBe(false);
    rmSync(to, { recursive: true, force: true });
    expect(readdirSync(temporary.path)).toEqual(["outside"]);
    expect(readdirSync(join(temporary.path, "outside"))).toEqual([]);
  }
  expect(results[0]).toBe(results[1]);
  return results[0] as string;
}

const FORBIDDEN: Readonly<Record<string, readonly Forged[]>> = {
  "leads up": [{ name: "../outside/x", content: "x" }],
  "leads up in the middle": [{ name: "a/../../outside/x", content: "x" }],
  "leads up by a PAX record": [pax(record("path", "../outside/x")), { name: "x", content: "x" }],
  "leads up by a GNU long name": [{ name: "L", type: "L", content: "../outside/x\0" }, { name: "x" }],
  "is absolute": [{ name: "/tmp/picod-absolute" }],
  "has no name": [{ name: "" }],
  "goes through an earlier symbolic link": [
    { name: "d", type: "2", link: "../outside" },
    { name: "d/x", content: "x" },
  ],
  "makes a directory through a link": [
    { name: "d", type: "2", link: "../outside" },
    { name: "d/e/", type: "5" },
  ],
  "is a hard link to the outside": [{ name: "x", type: "1", link: "../outside" }],
  "is a hard link to an absolute name": [{ name: "x", type: "1", link: "/etc/passwd" }],
  "is a hard link through a link": [
    { name: "d", type: "2", link: "/etc" },
    { name: "x", type: "1", link: "d/passwd" },
  ],
  "is a hard link to nothing": [{ name: "x", type: "1", link: "none" }],
  "is a hard link to a directory": [
    { name: "d", type: "5" },
    { name: "x", type: "1", link: "d" },
  ],
  "is a character device": [{ name: "null", type: "3" }],
  "is a block device": [{ name: "disk", type: "4" }],
  "is of an unknown type": [{ name: "x", type: "M" }],
  "is larger than the archive": [{ name: "x", content: "x", size: "00000100000" }],
  "has a negative size": [{ name: "x", size: `${"\xff".repeat(11)}\xfe` }],
  "has a size without digits": [{ name: "x", size: "sizeofthis!" }],
  "has a negative size in PAX": [pax(record("size", "-1")), { name: "x" }],
  "has a huge PAX header": [pax(record("comment", "x".repeat(2_000_000)).replace(/^\d+/, "2000012")), { name: "x" }],
  "has a PAX record that is longer than its header": [pax("99 path=x\n"), { name: "x" }],
  "has a PAX record without length": [pax("path=x\n"), { name: "x" }],
  "has extents that overlap": [
    pax(record("GNU.sparse.map", "5,5,3,5") + record("GNU.sparse.size", "100")),
    { name: "x", content: "0123456789" },
  ],
  "has extents beyond its end": [
    pax(record("GNU.sparse.map", "0,10") + record("GNU.sparse.size", "5")),
    { name: "x", content: "0123456789" },
  ],
  "has a sparse map without end": [
    pax(record("GNU.sparse.major", "1") + record("GNU.sparse.realsize", "9")),
    { name: "x", content: "99\n" },
  ],
};

describe("an entry", () => {
  it.each(Object.entries(FORBIDDEN))("that %s is refused", async (_what, entries) => {
    expect(await reasonOf(archiveOf({ name: "before", content: "fine" }, ...entries))).toBe("INVALID_ARCHIVE");
  });

  it("whose header was changed is refused, and so is gzip that was", async () => {
    const archive = archiveOf({ name: "a", content: "x" }, { name: "b", content: "x" });
    archive.write("c", 1024);
    expect(await reasonOf(archive)).toBe("INVALID_ARCHIVE");
    const gzip = gzipSync(archiveOf({ name: "a", content: "x".repeat(100_000) }));
    gzip.writeUInt8(gzip.readUInt8(gzip.length - 8) ^ 1, gzip.length - 8);
    expect(await reasonOf(gzip)).toBe("INVALID_ARCHIVE");
  });

  it("is refused wherever the archive is cut off", async () => {
    const archive = archiveOf(
      { name: "d", type: "5" },
      { name: "d/a", content: "x".repeat(700) },
      { name: "l", type: "2", link: "d" },
    );
    const whole = archive.length - END.length;
    for (const length of [0, 1, 100, 511, 512, 513, 1023, 1024, 1500, 2048, 2500, whole, whole + 511]) {
      expect([length, await reasonOf(archive.subarray(0, length))]).toEqual([length, "INVALID_ARCHIVE"]);
    }
    const gzip = gzipSync(archive);
    for (let length = 0; length < gzip.length; length += 9)
      expect(await reasonOf(gzip.subarray(0, length))).toBe("INVALID_ARCHIVE");
  });

  it("may be a FIFO, and what follows the end of the archive is nobody's", async () => {
    using temporary = temporaryDirectory();
    const to = join(temporary.path, "to");
    const archive = Buffer.concat([archiveOf({ name: "fifo", type: "6" }), Buffer.from("garbage")]);
    await unpack(access, to, archive, { atomic: true });
    await unpack(access, to, Buffer.concat([gzipSync(archive), Buffer.from("garbage")]), {}, 3);
    expect(lstatSync(join(to, "fifo")).isFIFO()).toBe(true);
  });
});

describe("a name that comes again", () => {
  it("is what the last entry says", async () => {
    using temporary = temporaryDirectory();
    const to = join(temporary.path, "to");
    writeFileSync(join(temporary.path, "target"), "target");
    await unpack(
      access,
      to,
      archiveOf(
        { name: "twice", content: "first" },
        { name: "twice", content: "second" },
        { name: "file-then-directory", content: "x" },
        { name: "file-then-directory/", type: "5" },
        { name: "file-then-directory/x", content: "x" },
        { name: "link-then-directory", type: "2", link: "../target" },
        { name: "link-then-directory/", type: "5" },
        { name: "link-then-file", type: "2", link: "../target" },
        { name: "link-then-file", content: "file" },
        { name: "directory-then-link/", type: "5" },
        { name: "directory-then-link", type: "2", link: ".." },
        { name: "again", type: "1", link: "twice" },
        { name: "again", type: "1", link: "twice" },
        { name: "again", type: "1", link: "again" },
      ),
    );
    expect(readFileSync(join(to, "twice"), "utf8")).toBe("second");
    expect(lstatSync(join(to, "link-then-directory")).isDirectory()).toBe(true);
    expect(readFileSync(join(to, "link-then-file"), "utf8")).toBe("file");
    expect(lstatSync(join(to, "directory-then-link")).isSymbolicLink()).toBe(true);
    expect(lstatSync(join(to, "again")).nlink).toBe(2);
    expect(readFileSync(join(temporary.path, "target"), "utf8")).toBe("target");
    expect(readdirSync(to).filter((name) => name.startsWith(".picod"))).toEqual([]);
  });
});

describe("a bomb", () => {
  it("ends at the limits", async () => {
    const zeros = (mib: number) => Buffer.alloc(mib * 1024 * 1024);
    const file = archiveOf({ name: "zeros", content: zeros(64) });
    expect(await reasonOf(gzipSync(file), { maxBytes: 1024n * 1024n })).toBe("ARCHIVE_LIMIT_REACHED");
    expect(await reasonOf(gzipSync(zeros(64)))).toBe("ARCHIVE_LIMIT_REACHED");
    const many = archiveOf(...Array.from({ length: 200 }, (_, index) => ({ name: `d${index}/`, type: "5" })));
    expect(await reasonOf(gzipSync(many), { maxEntries: 199n })).toBe("ARCHIVE_LIMIT_REACHED");
    expect(await reasonOf(gzipSync(many), { maxEntries: 200n })).toBe("none");
    const long = Array.from({ length: 50 }, (_, index) => [
      pax(record("path", `x${index}`) + " ".repeat(0)),
      { name: "x" },
    ]).flat();
    expect(await reasonOf(archiveOf(...long), { maxBytes: 0n })).toBe("none");
  });
});

describe("somebody who swaps a directory for a link meanwhile", () => {
  it("leads nothing out", async () => {
    using temporary = temporaryDirectory();
    const [to, outside] = ["to", "outside"].map((name) => join(temporary.path, name)) as [string, string];
    mkdirSync(join(to, "d"), { recursive: true });
    mkdirSync(outside);
    const entries = Array.from({ length: 300 }, (_, index) => [
      { name: `f${index}`, content: "x" },
      { name: `d/f${index}`, content: "x" },
    ]).flat();
    const archive = archiveOf(...entries);
    let swaps = 0;
    let stop = false;
    const swapping = (async () => {
      while (!stop) {
        renameSync(join(to, "d"), join(to, "e"));
        symlinkSync(outside, join(to, "d"));
        await new Promise((resolve) => setImmediate(resolve));
        rmSync(join(to, "d"));
        renameSync(join(to, "e"), join(to, "d"));
        swaps++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    while (swaps < 25) await unpack(access, to, archive, {}, 2048).catch(() => undefined);
    stop = true;
    await swapping;
    expect(swaps).toBeGreaterThan(20);
    expect(readdirSync(outside)).toEqual([]);
  });
});

describe("a full disk", () => {
  it("leaves nothing behind", async () => {
    using temporary = temporaryDirectory();
    const disk = join(temporary.path, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
    try {
      const archive = archiveOf({ name: "small", content: "x" }, { name: "large", content: Buffer.alloc(3 * 1024 * 1024, "x") });
      await expect(unpack(access, join(disk, "to"), archive, { atomic: true })).rejects.toMatchObject({
        code: "ENOSPC",
        path: join(disk, "to/large"),
      });
      expect(readdirSync(disk)).toEqual([]);
      await expect(unpack(access, join(disk, "to"), archive)).rejects.toMatchObject({ code: "ENOSPC" });
      expect(readdirSync(join(disk, "to"))).toEqual(["small"]);
      execFileSync("mount", ["-o", "remount,ro", disk]);
      await expect(unpack(access, join(disk, "new"), archive, { atomic: true })).rejects.toMatchObject({ code: "EROFS" });
    } finally {
      execFileSync("umount", [disk]);
    }
  });
});
