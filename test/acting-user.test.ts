import { describe, expect, it } from "vitest";
import { resolvePath, resolveUser, workingDirectory } from "../src/acting-user.js";
import { UserDatabase } from "../src/os/users.js";

const users = new UserDatabase();
const root = resolveUser(users, "root");

describe("resolvePath", () => {
  it.each([
    ["/a/b", "/a/b"],
    ["a", "/work/a"],
    ["./a/../b", "/work/./a/../b"],
    ["~", "/root"],
    ["~/a", "/root/a"],
    ["~root/a", "/root/a"],
    ["~nobody", "/nonexistent"],
    ["~no-such-user/a", "/work/~no-such-user/a"],
    ["a~b", "/work/a~b"],
  ])("turns %s into %s", (path, expected) => {
    expect(resolvePath(path, root, "/work", users)).toBe(expected);
  });

  it.each([
    ["", /it is empty/],
    ["/a\0b", /NUL/],
    [`/${"a".repeat(4095)}`, /4096 bytes long, more than 4095/],
    ["é".repeat(2048), /bytes long/],
  ])("refuses %j", (path, message) => {
    expect(() => resolvePath(path, root, "/work", users)).toThrow(message);
  });
});

describe("resolveUser", () => {
  it("finds users by name and by number, and numbers without a name", () => {
    expect(resolveUser(users, "0")).toEqual(root);
    expect(resolveUser(users, "nobody")).toMatchObject({ uid: 65534, gid: 65534, home: "/nonexistent" });
    expect(resolveUser(users, "4242")).toEqual({ name: "4242", uid: 4242, gid: 4242, home: "/", shell: "", groups: [4242] });
  });

  it.each(["", "no-such-user", "-1", "99999999999", "root\n"])("refuses %j", (name) => {
    expect(() => resolveUser(users, name)).toThrow(/no such user/);
  });
});

describe("workingDirectory", () => {
  it("is the configured one, else the home", () => {
    expect([workingDirectory(root, "/srv"), workingDirectory(root, undefined)]).toEqual(["/srv", "/root"]);
  });
});
