import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { PathFilter } from "../../src/filesystem/patterns/path-filter.js";
import { decodePath } from "../../src/os/path-bytes.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

type Tree = Readonly<Record<string, string>>;

/** Which paths of a tree git ignores, and which the filter leaves out; a name that ends in a slash is an empty directory. */
function compare(files: Tree): { byGit: string[]; byFilter: string[] } {
  using directory = temporaryDirectory();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(path.endsWith("/") ? join(directory.path, path) : dirname(join(directory.path, path)), { recursive: true });
    if (!path.endsWith("/")) writeFileSync(join(directory.path, path), content, "latin1");
  }
  execFileSync("git", ["init", "-q", directory.path], { env: { PATH: process.env.PATH, HOME: "/nonexistent" } });

  const filter = new PathFilter({ include: [], exclude: [], gitignore: true });
  const [all, byFilter]: [string[], string[]] = [[], []];
  const visit = (above: string, leftOut: boolean) => {
    const ignoreFile = files[`${above}.gitignore`];
    if (ignoreFile !== undefined && !leftOut) filter.addIgnoreFile(above.slice(0, -1), ignoreFile);
    const entries = readdirSync(join(directory.path, above), { withFileTypes: true, encoding: "buffer" });
    for (const entry of entries.toSorted((a, b) => Buffer.compare(a.name, b.name))) {
      const path = above + decodePath(entry.name);
      if (path === ".git") continue;
      all.push(path);
      if (!filter.includes(path, entry.isDirectory())) byFilter.push(path);
      if (entry.isDirectory()) visit(`${path}/`, !filter.enters(path));
    }
  };
  visit("", false);
  return { byGit: ignoredByGit(directory.path, all), byFilter };
}

function ignoredByGit(directory: string, paths: readonly string[]): string[] {
  try {
    const options = { cwd: directory, input: paths.join("\0"), env: { PATH: process.env.PATH, HOME: "/nonexistent" } };
    return execFileSync("git", ["check-ignore", "--no-index", "-z", "--stdin"], options).toString().split("\0").slice(0, -1);
  } catch (error) {
    // It says so when none is ignored.
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}

const TREE: Tree = Object.fromEntries(
  ["a", "b", "a.o", "A.o", "b.txt", "dir/a", "dir/a.o", "dir/sub/a", "dir/sub/b.txt", "dir/sub/deep/a", "x/dir/a", "x/sub/dir/b"]
    .concat([
      " lead",
      "trail ",
      "a b",
      "#hash",
      "!bang",
      "back\\slash",
      "q?mark",
      "st*r",
      "br[ack",
      "é",
      "ééa",
      "empty/",
      "x/a-b",
      "a]",
    ])
    .concat(["dir2/dir/sub/a", "abc", "aXc", "a-c", "a1c", "build/out/x", "build/keep/y", ".hidden/a", "log/a.log", "log/b.log"])
    .map((path) => [path, ""]),
);

it.each([
  ["names and stars", "a\n*.o\n!A.o\n"],
  ["anchored", "/a\n/dir/a\ndir/sub/*\n"],
  ["a slash in the middle anchors", "dir/a\nsub/dir\n"],
  ["directories only", "a/\nsub/\ndir2/\nempty/\n"],
  ["two stars", "**/sub\n"],
  ["two stars within", "dir/**/a\n"],
  ["two stars behind", "dir/**\n!dir/sub\n"],
  ["two stars that are one", "x**/a\nd**r\n"],
  ["what is below an excluded directory stays excluded", "build/\n!build/keep/y\n"],
  ["re-included beside", "build/*\n!build/keep\n"],
  ["all but", "*\n!*/\n!*.txt\n"],
  ["escapes", "\\#hash\n\\!bang\nback\\\\slash\nq\\?mark\nst\\*r\nbr\\[ack\n"],
  ["comments and empty lines", "#hash\n\n   \n#!bang\n"],
  ["trailing spaces", "trail\\ \na b   \n"],
  ["leading spaces", " lead\n"],
  ["carriage returns", "a\r\n*.txt\r\n"],
  ["byte order mark", "\xef\xbb\xbfa\n"],
  ["sets", "a[A-Z]c\na[!0-9a-zA-Z]c\na[]]\n[]a]]\n"],
  ["classes", "a[[:digit:]]c\n[[:upper:]]*\n"],
  ["malformed", "[a\na[[:nope:]]c\nabc\\\n"],
  ["a set with a slash", "dir[/]a\nx[a/]dir\n"],
  ["bytes", "??\n???a\n"],
  ["escaped slash", "dir\\/a\nx\\/sub\n"],
  ["odd slashes", "/\n//\n/a/\ndir//a\n!\n!/\n"],
  ["only stars", "**\n!**/\n!/a\n"],
  ["three stars", "***/a\n/***\n"],
])("as git: %s", (_, rules) => {
  const { byGit, byFilter } = compare({ ...TREE, ".gitignore": rules });
  expect(byFilter).toEqual(byGit);
});

it("nested files have precedence over those above", () => {
  const nested = {
    "dir/.gitignore": "!a.o\n/sub/a\n",
    "dir/sub/.gitignore": "!a\n*.txt\n",
    "x/.gitignore": "/dir\n!sub/dir/b\n",
  };
  const { byGit, byFilter } = compare({ ...TREE, ".gitignore": "*.o\nb\n", ...nested });
  expect(byFilter).toEqual(byGit);
  expect(byGit).toContain("dir/sub/a".replace("/a", "/b.txt"));
});

const PIECES = [
  "a",
  "b",
  "*",
  "**",
  "?",
  "/",
  "/",
  "[ab]",
  "[!a]",
  "\\",
  "dir",
  "sub",
  ".o",
  " ",
  "***",
  "[",
  "]",
  "-",
  "!",
  "é",
];

it("agrees with git about 100 random sets of rules", () => {
  let state = Number(process.env.PICOD_TEST_SEED ?? 1);
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const rule = () => {
    // Without what git(1) itself is of two minds about: two stars beside other characters, or before an escaped slash.
    const body = Array.from({ length: 1 + random(5) }, () => PIECES[random(PIECES.length)])
      .join("")
      .replaceAll("\\/", "/");
    return Buffer.from(`${random(4) === 0 ? "!" : ""}${body}${random(4) === 0 ? "/" : ""}`).toString("latin1");
  };
  const file = () => Array.from({ length: 1 + random(6) }, rule).join("\n");
  for (let round = 0; round < 100; round++) {
    const rules = { ".gitignore": file(), ...(random(2) ? { "dir/.gitignore": file() } : {}), "x/sub/.gitignore": file() };
    const { byGit, byFilter } = compare({ ...TREE, ...rules });
    expect(byFilter, JSON.stringify(rules)).toEqual(byGit);
  }
}, 120_000);
