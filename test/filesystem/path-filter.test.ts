import { describe, expect, it } from "vitest";
import { PicodError } from "../../src/errors/picod-error.js";
import { PathFilter } from "../../src/filesystem/patterns/path-filter.js";

const only = (...include: string[]) => new PathFilter({ include, exclude: [] });
const without = (...exclude: string[]) => new PathFilter({ include: [], exclude });

describe("a glob", () => {
  it.each([
    ["*.ts", ["a.ts", "src/a.ts", ".ts"], ["a.tsx", "ts", "a.ts/b"]],
    ["?", ["a", "é", "😀", "x/b", "\uef80"], ["ab", ""]],
    ["[a-c]x", ["ax", "cx"], ["dx", "x", "-x"]],
    ["[!a-c]x", ["dx", "éx", "😀x"], ["ax", "x"]],
    ["*[!😀]", ["a", "ab"], ["😀", "a😀"]],
    ["{a,b}.txt", ["a.txt", "d/b.txt"], ["c.txt", "{a,b}.txt"]],
    ["{a,{b,c}{1,2}}", ["a", "b1", "c2"], ["b", "1"]],
    ["{src,test}/**/*.ts", ["src/a.ts", "test/a/b/c.ts"], ["a.ts", "x/src/a.ts", "src/a.js"]],
    ["{*.md,docs/**}", ["x/y.md", "docs/a/b"], ["docs", "x/docs/a"]],
    ["/a", ["a"], ["b/a"]],
    ["./a", ["a"], ["b"]],
    ["a/b", ["a/b"], ["x/a/b", "a/b/c"]],
    ["**/b", ["b", "a/b", "a/x/b"], ["b/a", "ab"]],
    ["a/**", ["a/b", "a/b/c"], ["a", "b/a"]],
    ["a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a", "ab", "b"]],
    ["**", ["a", "a/b", ".x"], []],
    ["\\*", ["*"], ["a"]],
    ["a\\{b\\,c\\}", ["a{b,c}"], ["ab"]],
    ["[{]a,b[}]", ["{a,b}"], ["a"]],
  ])("%s", (pattern, matching, others) => {
    const filter = only(pattern);
    expect(matching.filter((path) => !filter.includes(path, false))).toEqual([]);
    expect(others.filter((path) => filter.includes(path, false))).toEqual([]);
  });

  it("with a slash at its end is about directories", () => {
    expect(only("a/").includes("x/a", true)).toBe(true);
    expect(only("a/").includes("x/a", false)).toBe(false);
  });

  it.each(["", "/", "[a", "{a", "a}", "a\\", "[[:nope:]]", "{a,b}".repeat(12), "x".repeat(5000)])(
    "%j is malformed",
    (pattern) => {
      expect(() => without(pattern)).toThrow(PicodError);
      expect(() => only("fine", pattern)).toThrow(/^invalid include: /);
    },
  );
});

it("leaves out what is excluded, with all that is in it", () => {
  const filter = without("node_modules", "*.log", "/build/**");
  const paths = ["a", "a.log", "x/node_modules", "x/node_modules/a/b", "build", "build/a", "x/build/a"];
  expect(paths.filter((path) => filter.includes(path, false))).toEqual(["a", "build", "x/build/a"]);
  expect(["x/node_modules", "build", "build/a", "x"].filter((path) => filter.enters(path))).toEqual(["build", "x"]);
});

it("leaves out hidden names and what is in them", () => {
  const filter = new PathFilter({ include: [], exclude: [], skipHidden: true });
  const paths = [".a", "a/.b", ".a/b", "a/b", "a.b"];
  expect(paths.filter((path) => filter.includes(path, false))).toEqual(["a/b", "a.b"]);
});

it("forgets the rules of directories that a walk has left", () => {
  const filter = new PathFilter({ include: [], exclude: [], gitignore: true });
  filter.addIgnoreFile("", "*.o\n");
  filter.addIgnoreFile("a", "x\n");
  expect(filter.includes("a/x", false)).toBe(false);
  filter.addIgnoreFile("b", "y\n");
  expect(["a/x", "b/y", "b/x", "b/a.o"].filter((path) => filter.includes(path, false))).toEqual(["a/x", "b/x"]);
});

describe("nothing takes long", () => {
  /** On a busy machine; it would be seconds without a bound. */
  const CEILING_MS = 500;
  const long = "a".repeat(255);
  const deep = Array.from({ length: 200 }, () => "a".repeat(20)).join("/");

  function slowest(filter: PathFilter, paths: readonly string[]): number {
    const times = paths.map((path) => {
      const begun = performance.now();
      try {
        filter.includes(path, false);
      } catch (error) {
        expect(error).toMatchObject({ reason: "INVALID_ARGUMENT" });
      }
      return performance.now() - begun;
    });
    return Math.max(...times);
  }

  it.each([
    ["stars", `${"*a".repeat(100)}b`],
    ["two stars", `${"**/".repeat(200)}b`],
    ["two stars and stars", `${"**/*a*a*a*a*a*a*b/".repeat(200)}b`],
    ["alternatives", "{*a*a*a,*a*a*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}{*a,*b}b"],
    ["sets", `*${"[a-z]".repeat(200)}b`],
  ])("of %s", (_, pattern) => {
    expect(slowest(only(pattern), [long, deep, `${deep}/${long}`])).toBeLessThan(CEILING_MS);
  });

  it("of an ignore file", () => {
    for (const rule of ["*a*a*a*a*a*a*a*a*b", "**/*a*/**/*a*/**/b", "[[:[:[:", `${"[".repeat(4000)}`, "x", "!*"]) {
      const filter = new PathFilter({ include: [], exclude: [], gitignore: true });
      filter.addIgnoreFile("", `${rule}\n`.repeat((128 * 1024) / (rule.length + 1)));
      expect(slowest(filter, [long, deep, `${deep}/${long}`, "y", "z"])).toBeLessThan(CEILING_MS);
    }
  });
});
