import { describe, expect, it } from "vitest";
import { namesOf, PathGlob } from "../../src/policy/path-glob.js";

const glob = (pattern: string) => new PathGlob(pattern, "/home/u*er");

describe("a glob of paths", () => {
  it.each([
    ["/workspace/**", ["/workspace/a", "/workspace/a/b", "/workspace/.hidden"], ["/workspace", "/workspaces/a", "/"]],
    ["/workspace", ["/workspace"], ["/workspace/a", "/Workspace"]],
    ["/a/*/c", ["/a/b/c", "/a/.b/c"], ["/a/c", "/a/b/b/c", "/a/b/c/d"]],
    ["/a/**/c", ["/a/c", "/a/b/c", "/a/b/b/c"], ["/a", "/a/b", "/c"]],
    ["/a/?.t[xy]t", ["/a/b.txt", "/a/ä.tyt"], ["/a/b.tzt", "/a/bb.txt", "/a//b"]],
    ["/**", ["/", "/a", "/a/b\nc"], []],
    ["/", ["/"], ["/a"]],
    ["~/.cache/**", ["/home/u*er/.cache/a"], ["/home/user/.cache/a", "/home/u*er/.cache", "/home/uxer/.cache/a"]],
    ["~", ["/home/u*er"], ["/home/u*er/a"]],
    ["/a/\\*", ["/a/*"], ["/a/b"]],
    ["/a/..hidden", ["/a/..hidden"], ["/hidden"]],
  ])("%s", (pattern, matching, others) => {
    for (const path of matching) expect.soft(glob(pattern).matches(namesOf(path)), path).toBe(true);
    for (const path of others) expect.soft(glob(pattern).matches(namesOf(path)), path).toBe(false);
  });

  it.each([
    ["/a/b/**", ["/", "/a", "/a/b", "/a/b/c"], ["/b", "/a/c"]],
    ["/a/*/c", ["/a", "/a/x"], ["/a/x/c", "/b"]],
    ["/**/c", ["/", "/a/b", "/c"], []],
  ])("%s leads on", (pattern, leading, others) => {
    for (const path of leading) expect.soft(glob(pattern).leadsBeyond(namesOf(path)), path).toBe(true);
    for (const path of others) expect.soft(glob(pattern).leadsBeyond(namesOf(path)), path).toBe(false);
  });

  it.each([
    ["/a/**", ["/a", "/a/b"], ["/", "/b"]],
    ["/a/**/c", [], ["/a", "/a/c"]],
    ["/a/*/**", ["/a/b"], ["/a"]],
    ["/**", ["/", "/a"], []],
  ])("%s covers what is below", (pattern, covered, others) => {
    for (const path of covered) expect.soft(glob(pattern).matchesAllBelow(namesOf(path)), path).toBe(true);
    for (const path of others) expect.soft(glob(pattern).matchesAllBelow(namesOf(path)), path).toBe(false);
  });

  it.each(["a/b", "", "~user/a", "/a/../b", "/a/./b", "/a/[", "/a\\"])("%j is malformed", (pattern) => {
    expect(() => glob(pattern)).toThrow(SyntaxError);
  });
});
