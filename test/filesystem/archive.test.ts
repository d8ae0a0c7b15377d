import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readArchive } from "../../src/filesystem/read-archive.js";
import { archiveOf, contentOf, treeOf, unpack } from "../helpers/archives.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const MIB = 1024 * 1024;
const access = accessAs();

/** A directory with all that an archive can hold. */
function makeTree(directory: string): void {
  mkdirSync(join(directory, "sub/empty"), { recursive: true });
  mkdirSync(join(directory, "l".repeat(120), "m".repeat(150)), { recursive: true });
  writeFileSync(join(directory, "l".repeat(120), "m".repeat(150), "n".repeat(200)), "long");
  mkdirSync(join(directory, "a".repeat(90), "b"), { recursive: true });
  writeFileSync(join(directory, "a".repeat(90), "b", "split"), "prefix");
  writeFileSync(join(directory, "ünïcode ☃"), "snow");
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/raw-`), Buffer.of(0xff, 0xfe, 0xe9)]), "raw");
  writeFileSync(join(directory, "empty"), "");
  writeFileSync(join(directory, "large"), Buffer.alloc(3 * MIB + 77, "large"));
  writeFileSync(join(directory, "medium"), Buffer.alloc(100_000, "medium"));
  for (let index = 0; index < 40; index++) writeFileSync(join(directory, "sub", `file-${index}`), "x".repeat(index * 97));
  linkSync(join(directory, "sub/file-3"), join(directory, "z-hard-link"));
  linkSync(join(directory, "large"), join(directory, "sub/another-large"));
  symlinkSync("sub/file-1", join(directory, "link"));
  symlinkSync(`/${"t".repeat(150)}`, join(directory, "long-link"));
  execFileSync("mkfifo", ["-m", "0640", join(directory, "fifo")]);
  makeSparse(join(directory, "sparse"));
  writeFileSync(join(directory, "hole"), "");
  truncateSync(join(directory, "hole"), 5 * MIB);
  execFileSync("setfattr", ["-n", "user.color=%", "-v", "0x00ff3d0a", join(directory, "medium")]);
  execFileSync("setfattr", ["-n", "user.of.directory", "-v", "yes", join(directory, "sub")]);
  chmodSync(join(directory, "sub/file-2"), 0o4751);
  chmodSync(join(directory, "sub/file-4"), 0o000);
  execFileSync("chown", ["12345:54321", join(directory, "sub/file-5")]);
  execFileSync("chown", ["3000000:nogroup", join(directory, "sub/file-6")]);
  execFileSync("touch", ["-d", "1969-12-31T23:59:58.25Z", join(directory, "sub/file-7")]);
  utimesSync(join(directory, "sub/file-8"), 1, 1);
  lutimesSync(join(directory, "link"), 1e9, 1e9);
  chmodSync(join(directory, "sub/empty"), 0o1755);
  chmodSync(join(directory, "sub"), 0o2750);
  execFileSync("touch", ["-d", "2001-02-03T04:05:06.123456789Z", join(directory, "sub"), directory]);
}

/** Data, hole, data, hole. */
function makeSparse(path: string): void {
  const fd = openSync(path, "w");
  for (let at = 0; at < 12; at++) writeSync(fd, Buffer.alloc(8192, `${at}`), 0, 8192, at * MIB);
  ftruncateSync(fd, 20 * MIB);
  closeSync(fd);
}

const tar = (...args: readonly string[]) => execFileSync("tar", args, { maxBuffer: 2 ** 30, stdio: ["ignore", "pipe", "pipe"] });

describe("an archive that is read", () => {
  it.each([false, true])("is what GNU tar extracts to the same tree (gzip: %s)", async (gzip) => {
    using temporary = temporaryDirectory();
    const [from, to, file] = ["from", "to", "archive"].map((name) => join(temporary.path, name)) as [string, string, string];
    mkdirSync(from);
    mkdirSync(to);
    makeTree(from);
    const { archive, summary } = await archiveOf(access, from, { gzip });
    writeFileSync(file, archive);
    expect(archive.length).toBeLessThan(6 * MIB);
    expect(summary.bytes).toBe(BigInt(archive.length));
    expect(summary.entries).toBe(BigInt(treeOf(from).length));
    tar("xf", file, "-C", to, "--xattrs", "--same-owner", "--numeric-owner", "-p");
    expect(treeOf(to)).toEqual(treeOf(from));
    expect(contentOf(to)).toEqual(contentOf(from));
    expect(statSync(join(to, "sparse")).blocks).toBe(statSync(join(from, "sparse")).blocks);
    const attribute = ["-n", "user.color=%", "-e", "hex", "--only-values", join(to, "medium")];
    expect(execFileSync("getfattr", attribute, { stdio: ["ignore", "pipe", "ignore"] })).toEqual(
      Buffer.from([0, 0xff, 0x3d, 0x0a]),
    );
  });

  it("leaves out sockets and PicoD's own temporary files, and takes a single file", async () => {
    using temporary = temporaryDirectory();
    const path = temporary.path;
    writeFileSync(join(path, ".picod-0123456789abcdef.tmp"), "");
    writeFileSync(join(path, "file"), "content");
    execFileSync("python3", ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", join(path, "socket")]);
    const list = (archive: Buffer) => execFileSync("tar", ["t"], { input: archive, encoding: "utf8" }).trimEnd().split("\n");
    expect(list((await archiveOf(access, path)).archive)).toEqual(["./", "file"]);
    expect(list((await archiveOf(access, join(path, "file"))).archive)).toEqual(["file"]);
  });

  it("fails when a file shrinks, and takes the old size of one that grows", async () => {
    using temporary = temporaryDirectory();
    const path = join(temporary.path, "file");
    writeFileSync(path, Buffer.alloc(8 * MIB, "x"));
    const read = async (change: () => void) => {
      let bytes = 0;
      for await (const event of readArchive(access, path, {}, new AbortController().signal)) {
        if (event.kind === "chunk" && bytes === 0) change();
        if (event.kind === "chunk") bytes += event.chunk.length;
      }
      return bytes;
    };
    const whole = await read(() => undefined);
    expect(await read(() => truncateSync(path, 9 * MIB))).toBe(whole);
    truncateSync(path, 8 * MIB);
    writeFileSync(path, Buffer.alloc(8 * MIB, "x"));
    await expect(read(() => truncateSync(path, MIB))).rejects.toMatchObject({ reason: "FILE_SHRANK", metadata: { path } });
  });

  it("has no place for what the user cannot read, unless it may be passed over", async () => {
    using temporary = temporaryDirectory();
    const path = temporary.path;
    writeFileSync(join(path, "public"), "");
    writeFileSync(join(path, "secret"), "", { mode: 0o600 });
    mkdirSync(join(path, "private"), { mode: 0o700 });
    const nobody = accessAs("nobody");
    await expect(archiveOf(nobody, path)).rejects.toMatchObject({ code: "EACCES", path: join(path, "private") });
    const { summary } = await archiveOf(nobody, path, { skipUnreadable: true });
    expect(summary).toMatchObject({ entries: 3n, unreadableCount: 2n });
    expect(summary.unreadable.map((each) => each.path)).toEqual([join(path, "private"), join(path, "secret")]);
  });
});

describe("an archive that is written", () => {
  const FORMATS: readonly (readonly string[])[] = [
    ["--format=pax", "--xattrs", "-S"],
    ["--format=pax", "-S", "--sparse-version=0.1"],
    ["--format=pax", "-S", "--sparse-version=0.0"],
    ["--format=gnu"],
    ["--format=gnu", "-S"],
    ["--format=oldgnu", "-S"],
  ];

  it.each(FORMATS.flatMap((flags) => [false, true].map((atomic) => ({ flags, atomic }))))(
    "gives the tree that GNU tar archived with $flags (atomic: $atomic)",
    async ({ flags, atomic }) => {
      using temporary = temporaryDirectory();
      const [from, to] = ["from", "to"].map((name) => join(temporary.path, name)) as [string, string];
      mkdirSync(from);
      makeTree(from);
      const archive = tar("cf", "-", ...flags, "-C", from, ".");
      const result = await unpack(access, to, atomic ? gzipSync(archive, { level: 1 }) : archive, {
        atomic,
        preserveOwner: true,
      });
      expect(result.entries).toBe(BigInt(treeOf(from).length));
      // Only PAX has fractions of a second.
      const times = (line: string) => (flags[0] === "--format=pax" ? line : line.replace(/\.\d*$/, ""));
      const earlier = (line: string) => !line.startsWith("sub/file-7|") || flags[0] === "--format=pax";
      expect(treeOf(to).filter(earlier).map(times)).toEqual(treeOf(from).filter(earlier).map(times));
      expect(contentOf(to)).toEqual(contentOf(from));
      if (flags.includes("-S")) expect(statSync(join(to, "sparse")).blocks).toBe(statSync(join(from, "sparse")).blocks);
      expect(readdirSync(temporary.path).sort()).toEqual(["from", "to"]);
    },
  );

  it("reads ustar, and what PicoD itself has archived, in pieces of any size", async () => {
    using temporary = temporaryDirectory();
    const [from, to] = ["from", "to"].map((name) => join(temporary.path, name)) as [string, string];
    mkdirSync(join(from, "sub"), { recursive: true });
    writeFileSync(join(from, "sub/file"), "x".repeat(2000));
    symlinkSync("sub", join(from, "link"));
    const own = (await archiveOf(access, from)).archive;
    const ustar = tar("cf", "-", "--format=ustar", "-C", from, ".");
    for (const archive of [own, gzipSync(own), ustar]) {
      for (const bytes of [1, 7, 511, 512, 513]) {
        await unpack(access, to, archive, { atomic: true }, bytes);
        expect(contentOf(to)).toEqual(contentOf(from));
      }
    }
    await unpack(access, to, own, { atomic: true });
    expect(treeOf(to)).toEqual(treeOf(from));
    expect(gunzipSync((await archiveOf(access, from, { gzip: true })).archive)).toEqual(own);
  });

  it("belongs to the acting user, without set-id bits that were another's", async () => {
    using temporary = temporaryDirectory();
    const from = join(temporary.path, "from");
    mkdirSync(from);
    writeFileSync(join(from, "program"), "");
    chmodSync(join(from, "program"), 0o6755);
    const place = join(temporary.path, "nobodys");
    mkdirSync(place);
    execFileSync("chown", ["nobody:nogroup", place]);
    const { archive } = await archiveOf(access, from);
    await unpack(accessAs("nobody"), join(place, "to"), archive, { atomic: true });
    expect(statSync(join(place, "to/program"))).toMatchObject({ uid: 65534, gid: 65534, mode: 0o100755 });
    await expect(unpack(accessAs("nobody"), place, archive, { preserveOwner: true })).rejects.toMatchObject({ code: "EPERM" });
    await expect(unpack(accessAs("nobody"), join(temporary.path, "to"), archive)).rejects.toMatchObject({ code: "EACCES" });
  });

  it.each([false, true])(
    "makes no directory through a link that leads nowhere, or in place of one (atomic: %s)",
    async (atomic) => {
      using directory = temporaryDirectory();
      symlinkSync("missing/target", join(directory.path, "link"));
      const archive = execFileSync("tar", ["-c", "-C", "/etc", "hostname"]);
      await expect(unpack(accessAs(), join(directory.path, "link"), archive, { atomic })).rejects.toMatchObject({
        code: "ENOENT",
      });
      expect(readdirSync(directory.path)).toEqual(["link"]);
    },
  );

  it("replaces the whole directory in one step when it is atomic, also one that its owner may not write", async () => {
    using temporary = temporaryDirectory();
    const to = join(temporary.path, "to");
    mkdirSync(join(to, "old/locked"), { recursive: true });
    writeFileSync(join(to, "old/locked/file"), "old");
    chmodSync(join(to, "old/locked"), 0o555);
    execFileSync("chown", ["-R", "nobody:nogroup", temporary.path]);
    const from = join(temporary.path, "from");
    mkdirSync(from);
    writeFileSync(join(from, "new"), "new");
    const { archive } = await archiveOf(access, from);
    await unpack(accessAs("nobody"), `${to}/`, archive, { atomic: true });
    expect(readdirSync(to)).toEqual(["new"]);
    expect(readdirSync(temporary.path).sort()).toEqual(["from", "to"]);
    await unpack(accessAs("nobody"), to, tar("cf", "-", "-C", "/", "etc/hostname"), {});
    expect(readdirSync(to).sort()).toEqual(["etc", "new"]);
    expect(readFileSync(join(to, "etc/hostname"))).toEqual(readFileSync("/etc/hostname"));
  });
});
