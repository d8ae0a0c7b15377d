import { createHash, randomBytes } from "node:crypto";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hashFile } from "../../src/filesystem/uploads/hash-file.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

describe("hashFile", () => {
  it.each([0, 1, 262_145, 16 * 1024 * 1024, 40_000_001])("hashes %i bytes", async (size) => {
    using directory = temporaryDirectory();
    const content = randomBytes(size);
    writeFileSync(`${directory.path}/file`, Buffer.concat([content, Buffer.from("behind")]));
    const fd = openSync(`${directory.path}/file`, "r");
    const digest = await hashFile(fd, size, new AbortController().signal);
    closeSync(fd);
    expect(digest).toBe(createHash("sha256").update(content).digest("hex"));
  });

  it("does not hold up the daemon", async () => {
    using directory = temporaryDirectory();
    writeFileSync(`${directory.path}/file`, Buffer.alloc(300_000_000));
    const fd = openSync(`${directory.path}/file`, "r");
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await hashFile(fd, 300_000_000, new AbortController().signal);
    clearInterval(timer);
    closeSync(fd);
    expect(turns).toBeGreaterThan(10);
  });

  it.each([1_000_000, 300_000_000])("stops when it is told to (%i bytes)", async (size) => {
    const fd = openSync("/dev/zero", "r");
    const cancel = new AbortController();
    const hashing = hashFile(fd, size, cancel.signal);
    cancel.abort(new Error("enough"));
    await expect(hashing).rejects.toThrow("enough");
    closeSync(fd);
  });
});
