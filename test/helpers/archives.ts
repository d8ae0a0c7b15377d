import { execFileSync } from "node:child_process";
import type { Access } from "../../src/filesystem/access.js";
import { type ReadArchiveOptions, readArchive } from "../../src/filesystem/read-archive.js";
import { type WriteArchiveOptions, type WriteArchiveResult, writeArchive } from "../../src/filesystem/write-archive.js";

const never = () => new AbortController().signal;

/** Archives as a client would, and checks the order of the events. */
export async function archiveOf(access: Access, path: string, options: ReadArchiveOptions = {}) {
  const chunks: Buffer[] = [];
  let kinds = "";
  for await (const event of readArchive(access, path, options, never())) {
    kinds += event.kind[0];
    if (event.kind === "chunk") chunks.push(Buffer.from(event.chunk));
    if (event.kind !== "summary") continue;
    if (!/^oc+s$/.test(kinds)) throw new Error(`events out of order: ${kinds}`);
    return { archive: Buffer.concat(chunks), summary: event };
  }
  throw new Error("no summary");
}

/** Unpacks an archive that comes in pieces of that many bytes. */
export function unpack(
  access: Access,
  path: string,
  archive: Uint8Array,
  options: WriteArchiveOptions = {},
  pieceBytes = 100_000,
): Promise<WriteArchiveResult> {
  async function* pieces() {
    for (let at = 0; at < archive.length; at += pieceBytes) yield archive.subarray(at, at + pieceBytes);
  }
  return writeArchive(access, path, options, pieces(), never());
}

/** Everything that can be known about what is in a directory, a line for each entry, and the directory itself. */
export function treeOf(directory: string): string[] {
  const print = "%P|%y|%m|%U:%G|%s|%n|%l|%T@\\n";
  const found = execFileSync("find", [directory, "-printf", print], { maxBuffer: 2 ** 28, encoding: "latin1" });
  // The size of a directory is the file system's own matter, and its links are its directories.
  const lines = found.trimEnd().split("\n");
  return lines.map((line) => line.replace(/\|d\|([^|]*\|[^|]*)\|\d+\|\d+\|/, "|d|$1||")).sort();
}

/** Content of all files, by checksum. */
export function contentOf(directory: string): string[] {
  const script = 'cd "$1" && find . -type f -print0 | xargs -0r sha256sum';
  return execFileSync("sh", ["-c", script, "sh", directory], { maxBuffer: 2 ** 28, encoding: "latin1" })
    .split("\n")
    .sort();
}
