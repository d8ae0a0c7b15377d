import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** One line for each entry of a tree, with all that a copy must keep: type, mode, owner, times in ns, links, blocks, xattrs, content. */
export function describeTree(top: string, { times = true, blocks = true } = {}): string[] {
  const groups = new Map<bigint, string>();
  const paths = [".", ...readdirSync(top, { recursive: true, encoding: "utf8" }).toSorted()];
  const xattrs = readXattrs(top);
  return paths.map((path) => {
    const full = join(top, path);
    const stats = lstatSync(full, { bigint: true });
    const isShared = !stats.isDirectory() && stats.nlink > 1n;
    if (isShared && !groups.has(stats.ino)) groups.set(stats.ino, path);
    return [
      path,
      stats.mode.toString(8),
      `${stats.uid}:${stats.gid}`,
      isShared ? `${stats.nlink} names, first ${groups.get(stats.ino)}` : "",
      stats.isDirectory() ? "" : stats.size,
      times ? stats.mtimeNs : "",
      blocks && stats.isFile() ? `${stats.blocks} blocks` : "",
      stats.isCharacterDevice() ? stats.rdev : "",
      stats.isSymbolicLink() ? readlinkSync(full) : "",
      stats.isFile() && stats.size < 100_000_000n ? createHash("md5").update(readFileSync(full)).digest("hex") : "",
      xattrs.get(path) ?? "",
    ].join(" | ");
  });
}

/** By path, as getfattr(1) prints them. */
function readXattrs(top: string): Map<string, string> {
  const options = ["-R", "-P", "-h", "-d", "-m", "^(user\\.|system\\.posix)", "--absolute-names", "."];
  const printed = execFileSync("getfattr", options, { cwd: top, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return new Map(
    printed
      .split("\n\n")
      .filter((block) => block.trim() !== "")
      .map((block) => {
        const [head = "", ...values] = block.trim().split("\n");
        return [head.replace(/^# file: (\.\/)?/, ""), values.toSorted().join(" ")];
      }),
  );
}

/** Lines of one description that are not in the other: short, where a comparison of all would be long. */
export function differences(one: readonly string[], other: readonly string[]): string[] {
  const [inOne, inOther] = [new Set(one), new Set(other)];
  return [
    ...one.filter((line) => !inOther.has(line)).map((line) => `- ${line}`),
    ...other.filter((line) => !inOne.has(line)).map((line) => `+ ${line}`),
  ];
}
