import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type AttributeChanges, setAttributes } from "../../src/filesystem/set-attributes.js";
import { stat } from "../../src/filesystem/stat.js";
import { accessAs } from "../helpers/file-access.js";
import { mountedTmpfs, remountReadOnly } from "../helpers/mounted-tmpfs.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const access = accessAs();
const nobody = accessAs("nobody");
const NOBODY = 65534;

function fileIn(directory: string, owner = 0): string {
  const path = `${directory}/file`;
  writeFileSync(path, "content");
  chownSync(path, owner, owner);
  return path;
}

describe("SetAttributes", () => {
  it("changes all of them, set-id bits after the owner, and leaves what is absent", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path);
    const changes = {
      mode: 0o6751,
      owner: "nobody",
      group: "1234",
      modifiedTimeNs: -1n,
      accessedTimeNs: 1_700_000_000_123_456_789n,
    };
    const entry = setAttributes(access, path, changes);
    expect(entry).toMatchObject({ mode: 0o6751, uid: NOBODY, gid: 1234, modifiedTimeNs: -1n, permissions: "-rwsr-s--x" });
    expect(statSync(path, { bigint: true })).toMatchObject({ atimeNs: changes.accessedTimeNs, mtimeNs: -1n, uid: 65534n });
    const later = setAttributes(access, path, { modifiedTimeNs: 5n });
    expect(later).toMatchObject({ mode: 0o6751, uid: NOBODY, gid: 1234, modifiedTimeNs: 5n });
    expect(statSync(path, { bigint: true }).atimeNs).toBe(changes.accessedTimeNs);
    expect(setAttributes(access, path, {})).toEqual(later);
    expect(setAttributes(access, path, { group: "root" })).toMatchObject({ uid: NOBODY, gid: 0 });
  });

  it("follows a link, or changes the link itself", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path);
    const link = `${directory.path}/link`;
    symlinkSync("file", link);
    setAttributes(access, link, { owner: "nobody", mode: 0o600 });
    expect([statSync(path).uid, lstatSync(link).uid]).toEqual([NOBODY, 0]);
    const entry = setAttributes(access, link, { owner: "1", group: "2", modifiedTimeNs: 7n }, true);
    expect(entry).toMatchObject({ kind: "symlink", uid: 1, gid: 2, modifiedTimeNs: 7n, symlinkTarget: "file" });
    expect(lstatSync(link)).toMatchObject({ uid: 1, gid: 2 });
    expect(statSync(path).uid).toBe(NOBODY);
    const refused: [AttributeChanges, RegExp][] = [
      [{ mode: 0o777, owner: "5" }, /mode of .*link: a symbolic link has none/],
      [{ setXattrs: { "user.x": Buffer.of(1) }, owner: "5" }, /user xattrs of .*link/],
    ];
    for (const [changes, message] of refused) expect(() => setAttributes(access, link, changes, true)).toThrow(message);
    expect(lstatSync(link).uid).toBe(1);
  });

  it("sets, shows and removes user xattrs of files that the user can write", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path, NOBODY);
    const value = Buffer.from([0, 255, 10]);
    const large = Buffer.alloc(2_000, "x");
    setAttributes(nobody, path, { setXattrs: { "user.a": value, "user.é": large, "user.empty": Buffer.alloc(0) } });
    const { xattrs } = stat(nobody, path, false, true);
    expect(xattrs).toEqual(
      new Map([
        ["user.a", value],
        ["user.é", large],
        ["user.empty", Buffer.alloc(0)],
      ]),
    );
    setAttributes(nobody, path, { setXattrs: { "user.a": large }, removeXattrs: ["user.é", "user.missing"] });
    expect([...(stat(nobody, path, true, true).xattrs ?? [])].map(([name]) => name).sort()).toEqual(["user.a", "user.empty"]);
    expect(stat(nobody, path, false).xattrs).toBeUndefined();
    chmodSync(path, 0o400);
    expect(() => setAttributes(nobody, path, { setXattrs: { "user.a": value } })).toThrow(
      expect.objectContaining({ code: "EACCES", path }),
    );
    expect(() => setAttributes(access, path, { setXattrs: { "user.a": Buffer.alloc(65_537) } })).toThrow(
      expect.objectContaining({ code: "E2BIG" }),
    );
  });

  it("refuses what it cannot mean before it changes anything", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path);
    const refused: [AttributeChanges, string][] = [
      [{ owner: "no-such-user" }, "USER_NOT_FOUND"],
      [{ group: "no-such-group" }, "GROUP_NOT_FOUND"],
      ...["trusted.x", "user.", "xuser.a", "user.a\0b", `user.${"x".repeat(251)}`].map((name): [AttributeChanges, string] => [
        { setXattrs: { [name]: Buffer.of(1) } },
        "INVALID_ARGUMENT",
      ]),
      [{ removeXattrs: ["security.capability"] }, "INVALID_ARGUMENT"],
    ];
    for (const [changes, reason] of refused) {
      expect(() => setAttributes(access, path, { mode: 0o777, ...changes }), reason).toThrow(expect.objectContaining({ reason }));
    }
    expect(statSync(path).mode & 0o777).toBe(0o644);
  });

  it("has no more rights than the user's own shell", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path);
    for (const changes of [{ mode: 0o777 }, { owner: "nobody" }, { group: "nogroup" }, { modifiedTimeNs: 1n }]) {
      expect(() => setAttributes(nobody, path, changes)).toThrow(expect.objectContaining({ code: "EPERM", path }));
    }
    chownSync(path, NOBODY, 0);
    chmodSync(path, 0);
    expect(setAttributes(nobody, path, { mode: 0o200, modifiedTimeNs: 1n, group: "nogroup" })).toMatchObject({
      mode: 0o200,
      gid: NOBODY,
    });
    // Giving a file away is root's alone; and who is not of its group does not make it set-group.
    expect(() => setAttributes(nobody, path, { owner: "root" })).toThrow(expect.objectContaining({ code: "EPERM" }));
    chownSync(path, NOBODY, 1234);
    expect(setAttributes(nobody, path, { mode: 0o2755 }).mode).toBe(0o755);
    mkdirSync(`${directory.path}/closed`, { mode: 0o700 });
    writeFileSync(`${directory.path}/closed/file`, "");
    expect(() => setAttributes(nobody, `${directory.path}/closed/file`, {})).toThrow(expect.objectContaining({ code: "EACCES" }));
  });

  it("changes nothing of a read-only mount, and leaves what came before an error changed", () => {
    using readOnly = mountedTmpfs();
    const path = fileIn(readOnly.path);
    remountReadOnly(readOnly);
    for (const changes of [
      { mode: 0o777 },
      { owner: "nobody" },
      { modifiedTimeNs: 1n },
      { setXattrs: { "user.x": Buffer.of(1) } },
    ]) {
      expect(() => setAttributes(access, path, changes)).toThrow(expect.objectContaining({ code: "EROFS", path }));
    }
    using directory = temporaryDirectory();
    const pipe = `${directory.path}/pipe`;
    execFileSync("mkfifo", [pipe]);
    const changes = { mode: 0o600, setXattrs: { "user.x": Buffer.of(1) }, modifiedTimeNs: 1n };
    expect(() => setAttributes(access, pipe, changes)).toThrow(expect.objectContaining({ code: "EPERM", path: pipe }));
    expect(statSync(pipe)).toMatchObject({ mode: 0o010600 });
    expect(statSync(pipe).mtimeMs).toBeGreaterThan(1);
  });

  it("says where there are no xattrs", () => {
    expect(() => setAttributes(access, "/proc/self/status", { setXattrs: { "user.x": Buffer.of(1) } })).toThrow(
      expect.objectContaining({ code: "ENOTSUP" }),
    );
    expect(stat(access, "/proc/self/status", false, true).xattrs).toEqual(new Map());
  });

  it("stays inside the root", () => {
    using directory = temporaryDirectory();
    const path = fileIn(directory.path);
    mkdirSync(`${directory.path}/root`);
    symlinkSync("../file", `${directory.path}/root/link`);
    const confined = accessAs("root", `${directory.path}/root`);
    for (const name of ["/link", "/../file"]) {
      expect(() => setAttributes(confined, name, { mode: 0 })).toThrow(expect.objectContaining({ code: "ENOENT" }));
    }
    expect(statSync(path).mode & 0o777).toBe(0o644);
  });
});
