import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { stat } from "../../src/filesystem/stat.js";
import { type NewPart, PendingUploads } from "../../src/filesystem/uploads/pending-uploads.js";
import { eventually } from "../helpers/eventually.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { addPart, commit, digest } from "../helpers/upload.js";

const access = accessAs();
const nobody = accessAs("nobody");
const HOUR_MS = 3_600_000;

function pendingUploads(expireMs = HOUR_MS, maxUploads = 10): PendingUploads {
  const uploads = new PendingUploads({ expireMs, maxUploads });
  onTestFinished(() => uploads.close());
  return uploads;
}

const openFiles = () => readdirSync("/proc/self/fd").length;
const reason = (name: string) => expect.objectContaining({ reason: name });

describe("an upload in parts", () => {
  it("is nothing that others see until it is committed", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 4, "content");
    await addPart(uploads, access, path, 0, "new ");
    expect([readdirSync(directory.path), readFileSync(path, "utf8")]).toEqual([["file"], "old"]);
    expect(uploads.get(access, "up").received).toEqual([{ start: 0, end: 11 }]);
    const before = openFiles();
    const { entry, sha256 } = await commit(uploads, access, 11, { sha256: digest("new content"), sync: true });
    expect([entry.path, entry.size, sha256]).toEqual([path, 11n, digest("new content")]);
    expect([readdirSync(directory.path), readFileSync(path, "utf8")]).toEqual([["file"], "new content"]);
    await eventually("its descriptor is closed", () => openFiles() < before);
  });

  it.each([0, 1, 65_536, 20_000_000])("has all its %i bytes, in whatever order they come, and again", async (size) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const content = randomBytes(size);
    const uploads = pendingUploads();
    const length = Math.ceil(size / 7) || 1;
    const starts = [6, 0, 3, 3, 1, 5, 2, 4].map((part) => part * length).filter((start) => start <= size);
    await Promise.all(starts.map((start) => addPart(uploads, access, path, start, content.subarray(start, start + length + 9))));
    await commit(uploads, access, size, { sha256: digest(content) });
    expect(readFileSync(path).equals(content)).toBe(true);
  });

  it("counts what has arrived of a part that breaks off", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    const part = uploads.addPart(access, { id: "up", path, mode: undefined, offset: 2n, size: 100n });
    await part.write(Buffer.from("cd"));
    part.close();
    expect(uploads.get(access, "up").received).toEqual([{ start: 2, end: 4 }]);
    await addPart(uploads, access, path, 0, "ab");
    await commit(uploads, access, 4, { sha256: digest("abcd") });
    expect(readFileSync(path, "utf8")).toBe("abcd");
  });

  it("does not count a part with a wrong checksum, nor keep what it has written", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "abc", { sha256: digest("abc"), size: 3n });
    await expect(addPart(uploads, access, path, 2, "xyz", { sha256: digest("cde") })).rejects.toMatchObject({
      reason: "CHECKSUM_MISMATCH",
    });
    expect(uploads.get(access, "up").received).toEqual([{ start: 0, end: 2 }]);
    await addPart(uploads, access, path, 2, "c");
    await commit(uploads, access, 3, { sha256: digest("abc") });
    expect(readFileSync(path, "utf8")).toBe("abc");
  });

  it.each([
    [{ size: 2n }, "SIZE_MISMATCH"],
    [{ size: 4n }, "SIZE_MISMATCH"],
    [{ size: 2n ** 60n, offset: 0n }, "INVALID_ARGUMENT"],
    [{ size: 2n ** 52n, offset: 0n }, "NO_SPACE"],
    [{ offset: 2n ** 64n - 1n }, "INVALID_ARGUMENT"],
  ] as [Partial<NewPart>, string][])("refuses a part with %o", async (options, expected) => {
    using directory = temporaryDirectory();
    const uploads = pendingUploads();
    const adding = addPart(uploads, access, `${directory.path}/new/file`, 0, "abc", options);
    await expect(adding).rejects.toMatchObject({ reason: expected });
    if (expected === "SIZE_MISMATCH" && options.size === 4n) return;
    expect([readdirSync(directory.path), uploads.list(access)]).toEqual([[], []]);
  });

  it("keeps only so many separate ranges, and lets the gaps be filled", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    for (let range = 0; range < 1000; range++) await addPart(uploads, access, path, range * 2, "x");
    await expect(addPart(uploads, access, path, 3000, "x")).rejects.toMatchObject({ reason: "UPLOAD_LIMIT_REACHED" });
    for (let range = 0; range < 1000; range++) await addPart(uploads, access, path, range * 2 + 1, "y");
    await commit(uploads, access, 2000, { sha256: digest("xy".repeat(1000)) });
  });

  it("is what its first part has said", async () => {
    using directory = temporaryDirectory();
    chmodSync(directory.path, 0o777);
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "a", { mode: 0o600 });
    const others: [string, typeof access, string, number | undefined][] = [
      ["user", nobody, path, 0o600],
      ["path", access, `${path}2`, 0o600],
      ["mode", access, path, 0o601],
      ["mode", access, path, undefined],
    ];
    for (const [field, as, where, mode] of others) {
      await expect(addPart(uploads, as, where, 1, "b", { mode })).rejects.toMatchObject({
        reason: "UPLOAD_CONFLICT",
        metadata: { upload_id: "up", field },
      });
    }
    await commit(uploads, access, 1);
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("is there for its user alone", async () => {
    using directory = temporaryDirectory();
    const uploads = pendingUploads();
    await addPart(uploads, access, `${directory.path}/file`, 0, "a");
    expect(uploads.list(nobody)).toEqual([]);
    expect(() => uploads.get(nobody, "up")).toThrow(reason("UPLOAD_NOT_FOUND"));
    await expect(uploads.abort(nobody, "up")).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
    await expect(commit(uploads, nobody, 1)).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
    expect(uploads.list(access)).toMatchObject([{ id: "up", path: `${directory.path}/file` }]);
    await commit(uploads, access, 1);
    await expect(commit(uploads, nobody, 1)).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
  });

  it("is one of a bounded number", async () => {
    using directory = temporaryDirectory();
    const uploads = pendingUploads(HOUR_MS, 2);
    for (const id of ["one", "two"]) await addPart(uploads, access, `${directory.path}/${id}`, 0, "a", { id });
    const third = () => addPart(uploads, access, `${directory.path}/new/three`, 0, "a", { id: "three" });
    await expect(third()).rejects.toMatchObject({ reason: "UPLOAD_LIMIT_REACHED" });
    expect(readdirSync(directory.path)).toEqual([]);
    await uploads.abort(access, "one");
    await third();
    expect(uploads.list(access).map(({ id }) => id)).toEqual(["two", "three"]);
  });
});

describe("a commit", () => {
  it("names the first missing bytes and leaves the upload pending", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    for (const offset of [2, 4, 6, 8, 10]) await addPart(uploads, access, path, offset, "x");
    await expect(commit(uploads, access, 12)).rejects.toMatchObject({
      reason: "UPLOAD_INCOMPLETE",
      message: `cannot commit upload up of ${path}: missing are bytes 0 to 2, 3 to 4, 5 to 6 and 3 more ranges`,
    });
    await expect(commit(uploads, access, 10)).rejects.toMatchObject({ reason: "SIZE_MISMATCH" });
    expect(uploads.list(access)).toHaveLength(1);
    expect(readdirSync(directory.path)).toEqual([]);
  });

  it.each([3, 20_000_000])("of %i bytes verifies the checksum and can be tried again", async (size) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const content = randomBytes(size);
    for (const order of ["in order", "out of order"]) {
      const uploads = pendingUploads();
      const parts = [content.subarray(0, 2), content.subarray(2)].map((bytes, index) => [index * 2, bytes] as const);
      for (const [offset, bytes] of order === "in order" ? parts : parts.toReversed())
        await addPart(uploads, access, path, offset, bytes);
      const wrong = commit(uploads, access, size, { sha256: digest("other") });
      await expect(wrong).rejects.toMatchObject({ reason: "CHECKSUM_MISMATCH" });
      expect(readdirSync(directory.path)).toEqual([]);
      await commit(uploads, access, size, { sha256: digest(content) });
      expect(readFileSync(path).equals(content)).toBe(true);
      unlinkSync(path);
    }
  });

  it("waits for no part, and no part begins while it is under way", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    const part = uploads.addPart(access, { id: "up", path, mode: undefined });
    await part.write(Buffer.from("abc"));
    await expect(commit(uploads, access, 3)).rejects.toMatchObject({ reason: "UPLOAD_BUSY" });
    part.finish();
    part.close();
    const committing = commit(uploads, access, 3);
    await expect(addPart(uploads, access, path, 0, "x")).rejects.toMatchObject({ reason: "UPLOAD_BUSY" });
    await committing;
    expect(readFileSync(path, "utf8")).toBe("abc");
  });

  it("holds only while the precondition does", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "new");
    const { etag } = stat(access, path, false);
    await expect(commit(uploads, access, 3, { precondition: { kind: "must-not-exist" } })).rejects.toMatchObject({
      reason: "ALREADY_EXISTS",
    });
    writeFileSync(path, "older");
    await expect(commit(uploads, access, 3, { precondition: { kind: "etag", etag } })).rejects.toMatchObject({
      reason: "PRECONDITION_FAILED",
    });
    expect(readFileSync(path, "utf8")).toBe("older");
    await commit(uploads, access, 3, { precondition: { kind: "etag", etag: stat(access, path, false).etag } });
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  it("is answered again while the file is what it made", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "abc");
    const options = { sha256: digest("abc"), precondition: { kind: "must-not-exist" as const } };
    const answers = await Promise.all([commit(uploads, access, 3, options), commit(uploads, access, 3, options)]);
    answers.push(await commit(uploads, access, 3, options));
    expect(new Set(answers.map(({ entry, sha256 }) => entry.etag + sha256)).size).toBe(1);
    await expect(commit(uploads, access, 3, { sha256: digest("xyz") })).rejects.toMatchObject({ reason: "UPLOAD_CONFLICT" });
    writeFileSync(path, "other");
    await expect(commit(uploads, access, 3, options)).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
    rmSync(path);
    await expect(commit(uploads, access, 3, options)).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
  });

  it("that is cancelled leaves the upload pending", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    const content = Buffer.alloc(30_000_000, "x");
    await addPart(uploads, access, path, 1, content.subarray(1));
    await addPart(uploads, access, path, 0, content.subarray(0, 1));
    const cancel = new AbortController();
    const options = { size: BigInt(content.length), sha256: digest(content) };
    const committing = uploads.commit(access, "up", options, cancel.signal);
    cancel.abort(new Error("enough"));
    await expect(committing).rejects.toThrow("enough");
    expect(readdirSync(directory.path)).toEqual([]);
    await uploads.commit(access, "up", options, new AbortController().signal);
    expect(statSync(path).size).toBe(content.length);
  });

  it("of one of two uploads wins whole", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    const contents = ["a", "b", "c", "d"].map((letter) => letter.repeat(500_000));
    await Promise.all(contents.map((content, id) => addPart(uploads, access, path, 0, content, { id: `${id}` })));
    await Promise.all(contents.map((content, id) => commit(uploads, access, content.length, {}, `${id}`)));
    expect(contents).toContain(readFileSync(path, "utf8"));
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });
});

describe("the file that a commit replaces", () => {
  it("keeps mode and owner as they are by then", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const umask = process.umask(0o077);
    onTestFinished(() => void process.umask(umask));
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "new");
    await commit(uploads, access, 3);
    expect(statSync(path).mode & 0o7777).toBe(0o644);
    await addPart(uploads, access, path, 0, "newer");
    chownSync(path, 1234, 5678);
    chmodSync(path, 0o4750);
    await commit(uploads, access, 5);
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 5678, size: 5 });
    expect(statSync(path).mode & 0o7777).toBe(0o4750);
  });

  it("is found through symbolic links, which stay", async () => {
    using directory = temporaryDirectory();
    symlinkSync("target", `${directory.path}/link`);
    const uploads = pendingUploads();
    await addPart(uploads, access, `${directory.path}/link`, 0, "new");
    await commit(uploads, access, 3);
    expect(readFileSync(`${directory.path}/target`, "utf8")).toBe("new");
    expect(readlinkSync(`${directory.path}/link`)).toBe("target");
  });

  it("keeps its other names", async () => {
    using directory = temporaryDirectory();
    const [one, two] = [`${directory.path}/one`, `${directory.path}/two`];
    writeFileSync(one, "old and long");
    const uploads = pendingUploads();
    await addPart(uploads, access, one, 0, "new");
    linkSync(one, two);
    await commit(uploads, access, 3);
    expect([readFileSync(two, "utf8"), statSync(two).nlink, readdirSync(directory.path)]).toEqual(["new", 2, ["one", "two"]]);
  });

  it("is written in place when it is a mount point", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/source`, "old and long");
    writeFileSync(`${directory.path}/mounted`, "");
    execFileSync("mount", ["--bind", `${directory.path}/source`, `${directory.path}/mounted`]);
    try {
      const uploads = pendingUploads();
      await addPart(uploads, access, `${directory.path}/mounted`, 0, "new");
      await commit(uploads, access, 3);
      expect(readFileSync(`${directory.path}/source`, "utf8")).toBe("new");
    } finally {
      execFileSync("umount", ["--lazy", `${directory.path}/mounted`]);
    }
    expect(readdirSync(directory.path)).toEqual(["mounted", "source"]);
  });

  it("may be a program that is being executed, or a device", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/sleep`;
    copyFileSync("/bin/sleep", path);
    const child = spawn(path, ["1000"]);
    await once(child, "spawn");
    await eventually("it is executed", () => readlinkSync(`/proc/${child.pid}/exe`) === path);
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "#!/bin/sh\n");
    await commit(uploads, access, 10);
    expect(readFileSync(path, "utf8")).toBe("#!/bin/sh\n");
    child.kill("SIGKILL");
    await once(child, "exit");
    await addPart(uploads, access, "/dev/null", 0, "gone", { id: "null" });
    await commit(uploads, access, 4, {}, "null");
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  });

  it.each([0o755, 0o1777])("is written in place where the user may not replace it (directory %o)", async (directoryMode) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/shared`;
    chmodSync(directory.path, directoryMode);
    writeFileSync(path, "old and long");
    chmodSync(path, 0o666);
    const uploads = pendingUploads();
    await addPart(uploads, nobody, path, 3, "er");
    await addPart(uploads, nobody, path, 0, "new");
    await commit(uploads, nobody, 5, { sha256: digest("newer") });
    expect([readFileSync(path, "utf8"), statSync(path).uid, readdirSync(directory.path)]).toEqual(["newer", 0, ["shared"]]);
  });

  it("may be in a directory that was replaced meanwhile, even on another file system", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/d/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "one", { id: "one" });
    await addPart(uploads, access, path, 0, "two", { id: "two" });
    renameSync(`${directory.path}/d`, `${directory.path}/moved`);
    await commit(uploads, access, 3, {}, "one");
    expect(readFileSync(path, "utf8")).toBe("one");
    execFileSync("mount", ["-t", "tmpfs", "none", `${directory.path}/d`]);
    try {
      await commit(uploads, access, 3, {}, "two");
      expect(readFileSync(path, "utf8")).toBe("two");
      expect(readdirSync(`${directory.path}/d`)).toEqual(["file"]);
    } finally {
      execFileSync("umount", ["--lazy", `${directory.path}/d`]);
    }
    expect(readdirSync(`${directory.path}/moved`)).toEqual([]);
  });

  it("may have become a directory, which is an error that changes nothing", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "new");
    mkdirSync(path);
    await expect(commit(uploads, access, 3)).rejects.toMatchObject({ reason: "NOT_A_REGULAR_FILE" });
    rmSync(path, { recursive: true });
    await commit(uploads, access, 3);
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  it("can be replaced at the second attempt, when it is a mount point at the first", async () => {
    using directory = temporaryDirectory();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "none", directory.path]);
    try {
      const [path, small] = [`${directory.path}/file`, `${directory.path}/small`];
      writeFileSync(path, "old");
      mkdirSync(small);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=4k", "none", small]);
      writeFileSync(`${small}/file`, "");
      execFileSync("mount", ["--bind", `${small}/file`, path]);
      const uploads = pendingUploads();
      await addPart(uploads, access, path, 0, "x".repeat(9000));
      await expect(commit(uploads, access, 9000)).rejects.toMatchObject({ code: "ENOSPC", path });
      for (const mounted of [small, path]) execFileSync("umount", ["--lazy", mounted]);
      expect([readFileSync(path, "utf8"), readdirSync(directory.path)]).toEqual(["old", ["file", "small"]]);
      await commit(uploads, access, 9000);
      expect(readFileSync(path, "utf8")).toBe("x".repeat(9000));
      expect(readdirSync(directory.path)).toEqual(["file", "small"]);
    } finally {
      execFileSync("umount", ["--lazy", directory.path]);
    }
  });
});

describe("a dropped upload", () => {
  it("leaves nothing behind, and its parts in flight fail", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/new/parents/file`;
    const before = openFiles();
    const uploads = pendingUploads();
    const part = uploads.addPart(access, { id: "up", path, mode: undefined });
    await part.write(Buffer.from("abc"));
    expect(readdirSync(directory.path)).toEqual(["new"]);
    await uploads.abort(access, "up");
    expect(readdirSync(directory.path)).toEqual([]);
    await expect(part.write(Buffer.from("def"))).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
    expect(() => part.finish()).toThrow(reason("UPLOAD_NOT_FOUND"));
    expect(part.upload.gone.aborted).toBe(true);
    part.close();
    await eventually("everything is closed", () => openFiles() <= before);
    await expect(uploads.abort(access, "up")).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
  });

  it("keeps parents that others use by then", async () => {
    using directory = temporaryDirectory();
    const uploads = pendingUploads();
    await addPart(uploads, access, `${directory.path}/a/b/file`, 0, "abc");
    writeFileSync(`${directory.path}/a/other`, "");
    uploads.close();
    expect(readdirSync(directory.path, { recursive: true })).toEqual(["a", "a/other"]);
  });

  it("is one to which nothing was added for a while; a part in flight holds it", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/new/file`;
    const uploads = pendingUploads(50);
    await addPart(uploads, access, path, 0, "abc");
    const part = uploads.addPart(access, { id: "up", path, mode: undefined, offset: 3n });
    await addPart(uploads, access, `${directory.path}/other`, 0, "abc", { id: "other" });
    await eventually("another one has expired", () => uploads.list(access).length === 1);
    await part.write(Buffer.from("def"));
    part.finish();
    part.close();
    await eventually("it has expired", () => uploads.list(access).length === 0);
    expect(readdirSync(directory.path)).toEqual([]);
    expect(() => uploads.get(access, "up")).toThrow(reason("UPLOAD_NOT_FOUND"));
  });

  it("is one whose first part has brought nothing", () => {
    using directory = temporaryDirectory();
    const uploads = pendingUploads();
    const part = uploads.addPart(access, { id: "up", path: `${directory.path}/new/file`, mode: undefined });
    expect(uploads.list(access)).toHaveLength(1);
    part.close();
    expect([uploads.list(access), readdirSync(directory.path)]).toEqual([[], []]);
  });

  it("may be one that is being committed, which comes first", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const uploads = pendingUploads();
    await addPart(uploads, access, path, 0, "abc");
    const committing = commit(uploads, access, 3);
    await expect(uploads.abort(access, "up")).rejects.toMatchObject({ reason: "UPLOAD_NOT_FOUND" });
    await committing;
    await addPart(uploads, access, path, 0, "xyz");
    const failing = commit(uploads, access, 3, { precondition: { kind: "must-not-exist" } });
    await Promise.all([uploads.abort(access, "up"), expect(failing).rejects.toMatchObject({ reason: "ALREADY_EXISTS" })]);
    expect(uploads.list(access)).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe("abc");
  });
});
