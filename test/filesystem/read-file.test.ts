import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readFile } from "../../src/filesystem/read-file.js";
import { stat } from "../../src/filesystem/stat.js";
import { eventually } from "../helpers/eventually.js";
import { accessAs, readWhole } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();

describe("readFile", () => {
  it.each([0, 1, 1024, 262_143, 262_144, 262_145, 5_000_001])("gives all %i bytes and their checksum", async (size) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    const written = randomBytes(size);
    writeFileSync(path, written);
    const { content, sha256 } = await readWhole(access, path, { checksum: true });
    expect(content.equals(written)).toBe(true);
    expect(sha256).toBe(createHash("sha256").update(written).digest("hex"));
  });

  it.each([
    [{ offset: 2n }, "cdef"],
    [{ offset: 2n, length: 3n }, "cde"],
    [{ length: 0n }, ""],
    [{ offset: 6n }, ""],
    [{ offset: 5n, length: 100n }, "f"],
    [{ offset: 0n, length: 2n ** 64n - 1n }, "abcdef"],
  ])("gives the range %o", async (range, expected) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "abcdef");
    const { content, sha256 } = await readWhole(access, `${directory.path}/file`, { ...range, checksum: true });
    expect(content.toString()).toBe(expected);
    expect(sha256).toBe(createHash("sha256").update(expected).digest("hex"));
  });

  it.each([7n, 2n ** 63n, 2n ** 64n - 1n])("refuses the offset %s beyond the end", async (offset) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "abcdef");
    await expect(readWhole(access, `${directory.path}/file`, { offset })).rejects.toMatchObject({ reason: "OFFSET_BEYOND_END" });
    writeFileSync(`${directory.path}/empty`, "");
    await expect(readWhole(access, `${directory.path}/empty`, { offset })).rejects.toMatchObject({ reason: "OFFSET_BEYOND_END" });
  });

  it("reads on only in the version of the file that was asked for", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "abcdef");
    const { etag: ifEtag } = stat(access, path, true);
    expect((await readWhole(access, path, { ifEtag, offset: 3n })).content.toString()).toBe("def");
    writeFileSync(path, "xy");
    const refused = { reason: "PRECONDITION_FAILED", metadata: { path, etag: stat(access, path, true).etag } };
    // Whatever else is wrong follows from the change.
    for (const offset of [0n, 3n]) await expect(readWhole(access, path, { ifEtag, offset })).rejects.toMatchObject(refused);
    expect((await readWhole(access, path, { ifEtag: "" })).content.toString()).toBe("xy");
  });

  it("says when the file was written while it was read", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    for (const ifEtag of [false, true]) {
      writeFileSync(path, Buffer.alloc(1_000_000, "a"));
      const { etag } = stat(access, path, true);
      const events = readFile(access, path, { checksum: true, ifEtag: ifEtag ? etag : "" });
      const summary = (async () => {
        for await (const event of events) {
          if (event.kind === "opened") writeFileSync(path, "b", { flag: "a" });
          if (event.kind === "summary") return event.etag;
        }
      })();
      if (ifEtag) await expect(summary).rejects.toMatchObject({ reason: "PRECONDITION_FAILED" });
      else expect([etag, ""]).not.toContain(await summary);
    }
  });

  it("reads files whose size the kernel does not tell", async () => {
    expect((await readWhole(access, "/proc/cpuinfo")).content.length).toBeGreaterThan(100);
    const sysfs = "/sys/kernel/mm/transparent_hugepage/enabled";
    expect((await readWhole(access, sysfs)).content.toString()).toBe(readFileSync(sysfs, "utf8"));
    const version = readFileSync("/proc/version", "utf8");
    // A length is how much is wanted at most.
    expect((await readWhole(access, "/proc/version", { length: 1_000_000n })).content.toString()).toBe(version);
  });

  it("follows symbolic links", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "content");
    symlinkSync("file", `${directory.path}/link`);
    expect((await readWhole(access, `${directory.path}/link`)).content.toString()).toBe("content");
  });

  it("refuses what is not a regular file, without waiting for it", async () => {
    using directory = temporaryDirectory();
    execFileSync("mkfifo", [`${directory.path}/fifo`]);
    await expect(readWhole(access, `${directory.path}/fifo`)).rejects.toMatchObject({
      reason: "NOT_A_REGULAR_FILE",
      message: /it is a fifo/,
    });
    await expect(readWhole(access, directory.path)).rejects.toMatchObject({
      reason: "NOT_A_REGULAR_FILE",
      message: /it is a directory/,
    });
    await expect(readWhole(access, "/dev/zero")).rejects.toMatchObject({
      reason: "NOT_A_REGULAR_FILE",
      message: /it is a character-device/,
    });
  });

  it("names the path when there is nothing, or no permission", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/missing`;
    await expect(readWhole(access, path)).rejects.toMatchObject({ code: "ENOENT", path });
    writeFileSync(path, "secret", { mode: 0o600 });
    await expect(readWhole(accessAs("nobody"), path)).rejects.toMatchObject({ code: "EACCES", path });
    // The rights are given back afterwards.
    expect((await readWhole(access, path)).content.toString()).toBe("secret");
  });

  it("fails when the file shrinks while it is read", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, Buffer.alloc(2_000_000));
    const reading = (async () => {
      for await (const event of readFile(access, path)) if (event.kind === "opened") truncateSync(path, 1000);
    })();
    await expect(reading).rejects.toMatchObject({ reason: "FILE_SHRANK", message: /ended at byte 1000 instead of 2000000/ });
  });

  it("does not send what is appended after opening", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "abc");
    let content = "";
    for await (const event of readFile(access, path)) {
      if (event.kind === "opened") writeFileSync(path, "abcdef");
      if (event.kind === "chunk") content += Buffer.from(event.chunk).toString();
    }
    expect(content).toBe("abc");
  });

  it("closes the file when the reader leaves, at any point", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, Buffer.alloc(3_000_000));
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (const last of ["opened", "chunk"]) {
      for await (const event of readFile(access, path)) if (event.kind === last) break;
    }
    const never = readFile(access, path);
    await never.return(undefined);
    await eventually("everything is closed", () => open() <= before);
  });

  it("reads within its root only", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "inside");
    symlinkSync("/file", `${directory.path}/absolute`);
    symlinkSync("../../../../etc/passwd", `${directory.path}/escape`);
    const confined = accessAs("root", directory.path);
    expect((await readWhole(confined, "/file")).content.toString()).toBe("inside");
    expect((await readWhole(confined, "/absolute")).content.toString()).toBe("inside");
    expect((await readWhole(confined, "/../../file")).content.toString()).toBe("inside");
    await expect(readWhole(confined, "/escape")).rejects.toMatchObject({ code: "ENOENT" });
    await expect(readWhole(confined, "/etc/passwd")).rejects.toMatchObject({ code: "ENOENT" });
  });
});
