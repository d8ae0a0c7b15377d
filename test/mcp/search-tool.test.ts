import { mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { connectMcp } from "./connect.js";

describe("sandbox_fs_search", () => {
  it("finds lines by text and by expression, and files by name, and says when there is more", async () => {
    using directory = temporaryDirectory();
    await using daemon = await startDaemon({ args: ["--workdir", directory.path] });
    await using mcp = await connectMcp(daemon);
    const here = String((await mcp.call("sandbox_open")).workdir);
    mkdirSync(`${here}/src/deep`, { recursive: true });
    writeFileSync(`${here}/src/a.ts`, "first\nneedle (1)\nlast\n");
    writeFileSync(`${here}/src/deep/b.ts`, "Needle (2)\n".repeat(3));
    writeFileSync(`${here}/src/c.md`, "needle (3)\n");
    writeFileSync(`${here}/src/binary`, "needle\0");
    const search = (args: object) => mcp.call("sandbox_fs_search", args);
    await expect(search({ pattern: "needle (1)", path: "src", context_lines: 1 })).resolves.toEqual({
      matches: [{ path: `${here}/src/a.ts`, line: 2, text: "needle (1)", before: ["first"], after: ["last"] }],
      total: 1,
      searched_files: 3,
      binary_files: 1,
      truncated: false,
    });
    const expression = { pattern: "^need.* \\(\\d\\)$", regex: true, ignore_case: true, include: ["*.ts"], max_results: 2 };
    await expect(search(expression)).resolves.toMatchObject({ matches: [{ line: 2 }, { line: 1 }], truncated: true });
    await expect(search({ pattern: "first", path: `${here}/src/a.ts` })).resolves.toMatchObject({
      matches: [{ path: `${here}/src/a.ts`, line: 1 }],
    });
    await expect(search({ include: ["*.ts"] })).resolves.toEqual({
      entries: [
        { path: `${here}/src/a.ts`, type: "file", size_bytes: 22 },
        { path: `${here}/src/deep/b.ts`, type: "file", size_bytes: 33 },
      ],
      total: 2,
      truncated: false,
    });
    await expect(search({ max_results: 1 })).resolves.toMatchObject({
      entries: [{ type: "directory" }],
      total: 6,
      truncated: true,
    });
    await expect(mcp.failure("sandbox_fs_search", { pattern: "(", regex: true })).resolves.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    await expect(mcp.failure("sandbox_fs_search", { path: "../.." })).resolves.toMatchObject({ reason: "OUTSIDE_ROOT" });
  });
});
