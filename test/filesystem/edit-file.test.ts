import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import { type EditFileOptions, editFile } from "../../src/filesystem/edit-file.js";
import { unifiedDiff } from "../../src/filesystem/editing/unified-diff.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const NEVER = new AbortController().signal;
const anySize = () => undefined;

function edit(path: string, oldText: string, newText: string, options: Partial<EditFileOptions> = {}, user = "root") {
  return editFile(accessAs(user), path, { oldText, newText, everywhere: false, assertSize: anySize, ...options }, NEVER);
}

/** What patch(1) makes of the old content with the diff. */
function patched(directory: string, before: string, diff: string): string {
  writeFileSync(`${directory}/to-patch`, before);
  execFileSync("patch", ["--quiet", "--binary", `${directory}/to-patch`], { input: diff });
  return readFileSync(`${directory}/to-patch`, "utf8");
}

describe("an edit", () => {
  it("replaces a passage that stands in one place, keeps mode and owner, and shows the change", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "one\ntwo\nthree\nfour\nfive\nsix\n");
    chownSync(path, 1234, 5678);
    chmodSync(path, 0o4751);
    const { replacements, diff, entry } = await edit(path, "four\nfive", "4\n4a\n5");
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\nthree\n4\n4a\n5\nsix\n");
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 5678, mode: 0o104751 });
    expect({ replacements, ...diff, size: entry.size }).toEqual({
      replacements: 1,
      text: `--- ${path}\n+++ ${path}\n@@ -1,6 +1,7 @@\n one\n two\n three\n-four\n-five\n+4\n+4a\n+5\n six\n`,
      linesAdded: 3,
      linesRemoved: 2,
      size: 25n,
    });
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it.each([
    ["no newline at the end", "a\nb\nc", "c", "d\n", "a\nb\nd\n"],
    ["a newline that goes", "a\nb\n", "b\n", "b", "a\nb"],
    ["a byte order mark", "\uFEFFa\nb\n", "a", "é", "\uFEFFé\nb\n"],
    ["CRLF, when the passage has LF", "a\r\nb\r\nc\r\n", "a\nb\n", "x\n\ny\n", "x\r\n\r\ny\r\nc\r\n"],
    ["both line ends, to the letter", "a\r\nb\nc\n", "b\n", "x\ny\n", "a\r\nx\ny\nc\n"],
    ["CRLF, when the passage has CRLF", "a\r\nb\r\n", "a\r\n", "x\n", "x\nb\r\n"],
    ["$ patterns, which mean nothing", "a\nb\n", "a", "$&$1$$`", "$&$1$$`\nb\n"],
    ["nothing", "a\nb", "a\nb", "", ""],
    ["characters of four bytes", "🙂🙃\n", "🙃", "🙂", "🙂🙂\n"],
  ])("keeps %s", async (_what, before, oldText, newText, after) => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, before);
    const { diff } = await edit(path, oldText, newText);
    expect(readFileSync(path, "utf8")).toBe(after);
    expect(patched(directory.path, before, diff?.text ?? "")).toBe(after);
  });

  it("says how often and where a passage stands that is not in one place, and replaces all of them when asked to", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "x = 1\ny = 1\nz = 1\n");
    await expect(edit(path, "= 1", "= 2")).rejects.toMatchObject({
      reason: "TEXT_NOT_UNIQUE",
      message: expect.stringContaining("occurs 3 times, on lines 1, 2, 3:"),
      metadata: { path, occurrences: "3" },
    });
    expect((await edit(path, "= 1", "= 2", { everywhere: true })).replacements).toBe(3);
    expect(readFileSync(path, "utf8")).toBe("x = 2\ny = 2\nz = 2\n");
    writeFileSync(path, "aaa");
    await expect(edit(path, "aa", "b")).rejects.toMatchObject({ metadata: { occurrences: "2" } });
    expect((await edit(path, "aa", "b", { everywhere: true })).replacements).toBe(1);
    expect(readFileSync(path, "utf8")).toBe("ba");
  });

  it.each([
    ["hello", "absent", "occurs 0 times$"],
    ["if (a) {\n\treturn;\n}\n", "if (a) {\n  return;\n}", "differs only in white space"],
    ["", "anything", "the file is empty$"],
  ])("of %j says that %j is not there", async (content, oldText, message) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, content);
    await expect(edit(`${directory.path}/file`, oldText, "x")).rejects.toMatchObject({
      reason: "TEXT_NOT_FOUND",
      message: expect.stringMatching(message),
    });
  });

  it.each([
    ["", "x"],
    ["x", "x"],
    ["x", "\ud800"],
  ])("refuses %j for %j", async (oldText, newText) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, "x");
    await expect(edit(`${directory.path}/file`, oldText, newText)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
  });

  it.each([
    ["not UTF-8", Buffer.from([0x61, 0xff, 0x62])],
    ["with a NUL byte", Buffer.from("a\0b")],
  ])("refuses a binary file: %s", async (_what, content) => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, content);
    await expect(edit(`${directory.path}/file`, "a", "b")).rejects.toMatchObject({ reason: "NOT_TEXT" });
    expect(readFileSync(`${directory.path}/file`).equals(content)).toBe(true);
  });

  it("follows a symbolic link, keeps both names of a hard link, and refuses what is no file", async () => {
    using directory = temporaryDirectory();
    const path = (name: string) => `${directory.path}/${name}`;
    writeFileSync(path("file"), "old");
    symlinkSync("file", path("link"));
    linkSync(path("file"), path("other"));
    await edit(path("link"), "old", "new");
    expect(["link", "file", "other"].map((name) => readFileSync(path(name), "utf8"))).toEqual(["new", "new", "new"]);
    expect([lstatSync(path("link")).isSymbolicLink(), statSync(path("file")).nlink]).toEqual([true, 2]);
    await expect(edit(directory.path, "a", "b")).rejects.toMatchObject({ reason: "NOT_A_REGULAR_FILE" });
    await expect(edit(path("missing"), "a", "b")).rejects.toMatchObject({ code: "ENOENT" });
    expect(readdirSync(directory.path).toSorted()).toEqual(["file", "link", "other"]);
  });

  it("has the rights of its user", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    chmodSync(path, 0o644);
    await expect(edit(path, "old", "new", {}, "nobody")).rejects.toMatchObject({ code: "EACCES" });
    chmodSync(path, 0o600);
    await expect(edit(path, "old", "new", {}, "nobody")).rejects.toMatchObject({ code: "EACCES" });
    expect(readFileSync(path, "utf8")).toBe("old");
  });

  it("does not overwrite what somebody else has written meanwhile", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "old");
    let asked = 0;
    // Once for its size, once as it is read, and once for the new content.
    const assertSize = () => {
      if (++asked === 3) appendFileSync(path, " and more");
    };
    await expect(edit(path, "old", "new", { assertSize })).rejects.toMatchObject({ reason: "PRECONDITION_FAILED" });
    expect(readFileSync(path, "utf8")).toBe("old and more");
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("does not read a file that is too long, nor make one", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    writeFileSync(path, "");
    truncateSync(path, 2 ** 40);
    const assertSize = (bytes: number) => {
      if (bytes > 100) throw new Error(`${bytes} bytes`);
    };
    await expect(edit(path, "a", "b", { assertSize })).rejects.toThrow(`${2 ** 40} bytes`);
    writeFileSync(path, "a");
    await expect(edit(path, "a", "b".repeat(101), { assertSize })).rejects.toThrow("101 bytes");
    await expect(edit("/proc/self/status", "a", "b", { assertSize })).rejects.toThrow("bytes");
    expect(readFileSync(path, "utf8")).toBe("a");
  });

  it("ends when its caller has gone", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/file`;
    mkdirSync(`${directory.path}/unused`);
    writeFileSync(path, "old");
    const options = { oldText: "old", newText: "new", everywhere: false, assertSize: anySize };
    await expect(editFile(accessAs(), path, options, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(readFileSync(path, "utf8")).toBe("old");
  });
});

describe("a unified diff", () => {
  it("of changes that are far apart, at both ends of a long text, is what patch takes", () => {
    using directory = temporaryDirectory();
    const lines = Array.from({ length: 20_000 }, (_, number) => `line ${number}\n`);
    const before = lines.join("");
    for (const changed of [[0], [19_999], [0, 19_999], [3, 4, 12], [100, 107, 15_000]]) {
      const after = lines.map((line, number) => (changed.includes(number) ? `changed ${line}` : line)).join("");
      const diff = unifiedDiff("file", before, after);
      expect([diff?.linesAdded, diff?.linesRemoved]).toEqual([changed.length, changed.length]);
      expect(patched(directory.path, before, diff?.text ?? "")).toBe(after);
    }
  });

  it("is left out when it would be long", () => {
    const lines = (text: string) => `${text}\n`.repeat(3000);
    expect(unifiedDiff("file", lines("a"), lines("b"))).toBeUndefined();
    expect(unifiedDiff("file", "a".repeat(2 ** 20), `${"a".repeat(2 ** 20)}b`)).toBeUndefined();
  });
});
