import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
// @ts-expect-error: a program without types
import { withoutSections } from "../../packaging/elf.mjs";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

describe("withoutSections", () => {
  it("makes a program smaller that still runs", () => {
    using directory = temporaryDirectory();
    const program = readFileSync(process.execPath);
    const smaller: Buffer = withoutSections(program);
    expect(smaller.length).toBeLessThan(program.length * 0.9);
    const path = join(directory.path, "node");
    writeFileSync(path, smaller);
    chmodSync(path, 0o755);
    expect(execFileSync(path, ["--print", "6 * 7"], { encoding: "utf8" })).toBe("42\n");
  });

  it("refuses what is no program", () => {
    expect(() => withoutSections(Buffer.from("#!/bin/sh\n"))).toThrow("not an ELF file");
  });
});
