import { execFileSync } from "node:child_process";
import { closeSync, fstatSync, openSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createLinePattern, type LinePatternOptions } from "../../src/filesystem/searching/line-pattern.js";
import {
  type LineMatch,
  LineSearcher,
  type LineSearchOptions,
  type SearchTotals,
} from "../../src/filesystem/searching/line-searcher.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const DEFAULTS: LineSearchOptions = {
  contextBefore: 0,
  contextAfter: 0,
  maxMatches: Number.POSITIVE_INFINITY,
  maxMatchesPerFile: Number.POSITIVE_INFINITY,
  maxLineBytes: 1024,
  countOnly: false,
};

type Options = Partial<LineSearchOptions> & Partial<Omit<LinePatternOptions, "pattern">>;

async function searchFile(
  path: string,
  pattern: string,
  options: Options = {},
): Promise<SearchTotals & { matches: LineMatch[] }> {
  const { regex = false, ignoreCase = false, ...rest } = options;
  const searcher = new LineSearcher(await createLinePattern({ pattern, regex, ignoreCase }), { ...DEFAULTS, ...rest });
  const fd = openSync(path, "r");
  try {
    return { matches: [...searcher.search(fd, fstatSync(fd).size || Number.POSITIVE_INFINITY)], ...searcher.totals };
  } finally {
    closeSync(fd);
  }
}

async function searchText(text: string | Buffer, pattern: string, options: Options = {}) {
  using directory = temporaryDirectory();
  writeFileSync(`${directory.path}/file`, text);
  return await searchFile(`${directory.path}/file`, pattern, options);
}

const marked = ({ line, ranges }: LineMatch) => ranges.map(([start, end]) => Buffer.from(line).toString("utf8", start, end));

/** The three kinds of pattern. */
const WAYS: readonly (readonly [name: string, options: Options])[] = [
  ["literal", {}],
  ["in any case", { ignoreCase: true }],
  ["as an expression", { regex: true }],
];

describe.each(WAYS)("%s", (_, way) => {
  it("reports lines, where they are and where the matches are", async () => {
    const text = "one\ntwo needle\r\n\nünd needle needle";
    const { matches, ...totals } = await searchText(text, "needle", way);
    expect(matches).toMatchObject([
      { lineNumber: 2, line: "two needle", offset: 4, ranges: [[4, 10]], truncated: false },
      {
        lineNumber: 4,
        line: "ünd needle needle",
        offset: 17,
        ranges: [
          [5, 11],
          [12, 18],
        ],
        truncated: false,
      },
    ]);
    expect(totals).toEqual({
      matchedLines: 2,
      matchedFiles: 1,
      searchedFiles: 1,
      binaryFiles: 0,
      searchedBytes: Buffer.byteLength(text),
      truncated: false,
    });
  });

  it("replaces what is not UTF-8", async () => {
    const text = Buffer.concat([Buffer.of(0xff, 0xe2, 0x82), Buffer.from("needle"), Buffer.of(0xc3), Buffer.from("\n")]);
    const [match] = (await searchText(text, "needle", way)).matches as [LineMatch];
    expect(match.line).toBe("\ufffd\ufffdneedle\ufffd");
    expect(marked(match)).toEqual(["needle"]);
  });

  it("gives the lines around matches, each once", async () => {
    const lines = ["a", "b", "needle 1", "c", "needle 2", "d", "e", "f", "g", "needle 3", "needle 4", "h"];
    const { matches } = await searchText(`${lines.join("\r\n")}\r\n`, "needle", { ...way, contextBefore: 2, contextAfter: 2 });
    expect(matches.map(({ before, after }) => [before, after])).toEqual([
      [["a", "b"], ["c"]],
      [[], ["d", "e"]],
      [["f", "g"], []],
      [[], ["h"]],
    ]);
  });

  it("gives them across the blocks in which a file is read", async () => {
    const filler = Array.from({ length: 200_000 }, (_, index) => `line ${index}`);
    const lines = filler.map((line, index) => (index % 30_000 === 29_999 ? `${line} needle` : line));
    const { matches } = await searchText(lines.join("\n"), "needle", { ...way, contextBefore: 3, contextAfter: 3 });
    expect(matches.map(({ lineNumber }) => lineNumber)).toEqual([30_000, 60_000, 90_000, 120_000, 150_000, 180_000]);
    for (const { lineNumber, before, after, line, offset } of matches) {
      const at = lineNumber - 1;
      expect([...before, line, ...after]).toEqual(lines.slice(at - 3, at + 4));
      expect(offset).toBe(lines.slice(0, at).join("\n").length + 1);
    }
  });

  it("counts exactly what is beyond the limits", async () => {
    const text = "needle\n".repeat(20_000);
    const limited = await searchText(text, "needle", { ...way, maxMatches: 10 });
    expect([limited.matches.length, limited.matchedLines, limited.truncated]).toEqual([10, 20_000, true]);
    const ofFile = await searchText(text, "needle", { ...way, maxMatchesPerFile: 3 });
    expect([ofFile.matches.length, ofFile.matchedLines, ofFile.truncated]).toEqual([3, 20_000, true]);
    const counted = await searchText(text, "needle", { ...way, countOnly: true });
    expect([counted.matches.length, counted.matchedLines, counted.truncated]).toEqual([0, 20_000, false]);
  });

  it("finds matches in lines that are longer than a block", async () => {
    const block = "x".repeat(1_000_000);
    const text = `first\n${block}${block}needle${block}needle${block}\nneedle\n${block}${block}\nlast needle`;
    const { matches, matchedLines } = await searchText(text, "needle", { ...way, maxLineBytes: 20 });
    expect(matchedLines).toBe(3);
    expect(matches).toMatchObject([
      { lineNumber: 2, line: "xxxxxxxneedlexxxxxxx", offset: 6, ranges: [[7, 13]], truncated: true },
      { lineNumber: 3, line: "needle", offset: 4_000_019, truncated: false },
      { lineNumber: 5, line: "last needle", offset: 6_000_027, truncated: false },
    ]);
  });

  it("finds a match wherever two parts of a long line meet", async () => {
    for (let shift = 0; shift < 8; shift++) {
      for (const boundary of [2 ** 20, 2 ** 21 - 2 ** 16]) {
        const text = `${"x".repeat(boundary - shift)}needle${"x".repeat(1000)}`;
        expect((await searchText(text, "needle", { ...way, countOnly: true })).matchedLines).toBe(1);
      }
    }
  });

  it("cuts long lines around the first match, between characters", async () => {
    const { matches } = await searchText(`${"€".repeat(1000)}needle${"€".repeat(1000)}`, "needle", { ...way, maxLineBytes: 32 });
    const [match] = matches as [LineMatch];
    expect(match.line).toMatch(/^€{4}needle€{4}$/);
    expect(marked(match)).toEqual(["needle"]);
    expect(match.truncated).toBe(true);
  });

  it("leaves binary files out", async () => {
    const early = await searchText(`${"x".repeat(8191)}\0needle`, "needle", way);
    expect([early.matches.length, early.binaryFiles, early.searchedFiles, early.searchedBytes]).toEqual([0, 1, 0, 0]);
    const late = await searchText(`${"x".repeat(8192)}\0needle`, "needle", way);
    expect([late.matches.length, late.binaryFiles]).toEqual([1, 0]);
  });

  it("needs little memory for a gigabyte without a line feed", async () => {
    using directory = temporaryDirectory();
    const path = `${directory.path}/long`;
    const search = async (bytes: number) => {
      truncateSync(path, bytes);
      expect((await searchFile(path, "needle", way)).searchedBytes).toBe(bytes);
      return process.memoryUsage().rss;
    };
    writeFileSync(path, "x".repeat(10_000));
    // Garbage that is yet to be collected is as much for a small part of it.
    const before = await search(2 ** 26);
    expect((await search(2 ** 30)) - before).toBeLessThan(64 * 2 ** 20);
  });
});

it("is about ASCII and other letters in any case", async () => {
  const { matches } = await searchText("ÄPFEL\näpfel\nApfel\n", "äpfel", { ignoreCase: true });
  expect(matches.map(({ line }) => line)).toEqual(["ÄPFEL", "äpfel"]);
  expect((await searchText("a.b\nA.B\naxb", "a.B", { ignoreCase: true })).matchedLines).toBe(2);
});

it.each([
  ["^a", ["ab", "a"]],
  ["b$", ["ab", "b", "xb"]],
  ["^$", [""]],
  ["\\Aa", ["ab", "a"]],
  ["b\\z", ["ab", "b", "xb"]],
  ["[^x]b", ["ab"]],
  ["(?-m)^b$", ["b"]],
  ["\\bx", ["xb"]],
  ["(a|b)+", ["ab", "a", "b", "xb"]],
  ["a\\s*b", ["ab"]],
])("an expression is about one line at a time: %s", async (pattern, expected) => {
  for (const ending of ["\n", "\r\n"]) {
    const { matches } = await searchText(["ab", "a", "", "b", "xb", "c"].join(ending) + ending, pattern, { regex: true });
    expect(matches.map(({ line }) => line)).toEqual(expected);
  }
});

it.each(["(", "a**", "(?=a)", "\\1", "", "x".repeat(5000), "a{1001}"])("refuses %j", async (pattern) => {
  await expect(createLinePattern({ pattern, regex: true, ignoreCase: false })).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
  });
});

it("takes time that grows with the text alone", async () => {
  const text = `${"a".repeat(60_000)}\n`.repeat(20);
  for (const pattern of ["(a+)+$b", "(a|aa)+b", "(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)(.*)(.*)(.*)(.*)[0-9]"]) {
    expect((await searchText(text, pattern, { regex: true })).matchedLines).toBe(0);
  }
}, 60_000);

it("agrees with grep about files of the system", async () => {
  for (const path of ["/etc/passwd", "/etc/services", "/usr/share/common-licenses/GPL-3"]) {
    for (const [pattern, flags, options] of [
      ["the", "-F", {}],
      ["THE", "-Fi", { ignoreCase: true }],
      ["[0-9]+.*x$", "-E", { regex: true }],
      ["^\\w+ ", "-P", { regex: true }],
    ] as const) {
      const { matches } = await searchFile(path, pattern, options);
      expect(matches.map(({ lineNumber, offset, line }) => `${lineNumber}:${offset}:${line}`)).toEqual(
        grep(flags, pattern, path),
      );
    }
  }
});

function grep(flags: string, pattern: string, path: string): string[] {
  try {
    return execFileSync("grep", ["-nb", flags, "-e", pattern, path], { env: { LC_ALL: "C.UTF-8" } })
      .toString()
      .split("\n")
      .slice(0, -1);
  } catch {
    return [];
  }
}
