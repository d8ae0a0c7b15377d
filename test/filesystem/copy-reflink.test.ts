import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { copy } from "../../src/filesystem/copy.js";
import { accessAs } from "../helpers/file-access.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";

const IMAGE_BYTES = 400_000_000;
const FILE_BYTES = 150_000_000;

describe.each(["btrfs", "xfs"])("on %s", (type) => {
  it("a copy shares the data of the original, also where that has holes", async () => {
    using directory = temporaryDirectory();
    const [image, mounted] = [`${directory.path}/image`, `${directory.path}/mounted`];
    writeFileSync(image, "");
    truncateSync(image, IMAGE_BYTES);
    mkdirSync(mounted);
    execFileSync(`mkfs.${type}`, ["-q", image], { stdio: "ignore" });
    execFileSync("mount", ["-o", "loop", image, mounted]);
    try {
      const source = `${mounted}/source`;
      writeFileSync(source, randomBytes(FILE_BYTES));
      truncateSync(source, FILE_BYTES * 2);
      const used = () => {
        execFileSync("sync", ["-f", mounted]);
        return Number(execFileSync("df", ["--output=used", "-B1", mounted]).toString().split("\n")[1]);
      };
      const before = used();
      // Together they would not fit.
      for (const name of ["one", "two", "three"]) {
        await copy(accessAs(), source, `${mounted}/${name}`, {}, new AbortController().signal);
      }
      expect(used() - before).toBeLessThan(FILE_BYTES / 10);
      expect(readFileSync(`${mounted}/three`).equals(readFileSync(source))).toBe(true);
    } finally {
      execFileSync("umount", [mounted]);
    }
  });
});
