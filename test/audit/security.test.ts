import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const page = (name: string) => readFileSync(join(root, "docs", name), "utf8");

/** `file`: "title", "title" */
const PROOF = /`(test\/[^`]+)`: ((?:"[^"]+"(?:, )?)+)/g;

describe.each(["security.md", "reliability.md"])("docs/%s", (name) => {
  it("names tests that exist, by file and title", () => {
    const proofs = [...page(name).matchAll(PROOF)];
    expect(proofs.length).toBeGreaterThan(0);
    for (const [, file = "", titles = ""] of proofs) {
      const source = readFileSync(join(root, file), "utf8");
      for (const title of titles.match(/"[^"]+"/g) ?? []) expect(source.includes(title), `${file}: ${title}`).toBe(true);
    }
  });

  it("names only files that exist", () => {
    for (const [, path = ""] of page(name).matchAll(/`((?:test|src)\/[^`]+)`/g))
      expect(existsSync(join(root, path)), path).toBe(true);
    for (const [, path = ""] of page(name).matchAll(/\]\(([^):]+)\)/g))
      expect(existsSync(join(root, "docs", path)), path).toBe(true);
  });
});

describe("docs/security.md", () => {
  it("has a proof, or says that there is none, in every row", () => {
    const rows = page("security.md")
      .split("\n")
      .filter((line) => line.startsWith("| to "));
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter((row) => row.match(PROOF) === null && !row.includes("no test"))).toEqual([]);
  });
});
