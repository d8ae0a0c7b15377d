import { fstatSync, openSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ChainFile } from "./verify-chain.js";

/**
 * An audit log and what was rotated away from it (`path.1`, the newest, and so on), the oldest first. @throws the system error of one that cannot be
 * opened.
 */
export function openAuditFiles(path: string): ChainFile[] {
  // The newest first: a daemon that rotates them meanwhile shows one twice, and hides none.
  const seen = new Set<bigint>();
  const files: ChainFile[] = [];
  for (const name of [path, ...rotatedFrom(path)]) {
    const fd = openSync(name, "r");
    const { ino } = fstatSync(fd, { bigint: true });
    if (!seen.has(ino)) files.unshift({ name, fd });
    seen.add(ino);
  }
  return files;
}

function rotatedFrom(path: string): string[] {
  const prefix = `${basename(path)}.`;
  const numbers = readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^[1-9]\d*$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)));
  return numbers.sort((a, b) => a - b).map((number) => join(dirname(path), `${prefix}${number}`));
}
