import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const CHUNK_BYTES = 1024 * 1024;
/** The file to download, an upload, a download, and the temporary file that each may have beside it. */
const COPIES = 5;

/** What the jobs read. @throws Error when the disk has no room for what they write. */
export function createFiles(directory, load) {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize < load.bulkBytes * COPIES + load.streamBytes) {
    throw new Error(`${directory} has only ${Math.floor((bavail * bsize) / CHUNK_BYTES)} MiB free: set TMPDIR to another place`);
  }
  const files = { directory };
  for (const name of ["text", "stream", "bulk", "transfer", "lines", "small"]) files[name] = join(directory, name);
  writeFileSync(files.text, `${"x".repeat(63)}\n`.repeat(CHUNK_BYTES / 64));
  writeNumbered(files.stream, load.streamBytes);
  writeNumbered(files.bulk, load.bulkBytes);
  writeNumbered(files.transfer, load.transferBytes);
  writeFileSync(
    files.lines,
    Array.from({ length: load.lines }, (_, number) => `line ${number} of a program that says how far it is\n`).join(""),
  );
  mkdirSync(files.small);
  for (let index = 0; index < load.smallFiles; index++) writeFileSync(join(files.small, String(index)), "x".repeat(1024));
  return files;
}

/** Bytes that are no text, each chunk with its number, so that none can take the place of another. */
function writeNumbered(path, bytes) {
  const chunk = randomBytes(CHUNK_BYTES);
  const file = openSync(path, "w");
  for (let number = 0; number < bytes / CHUNK_BYTES; number++) {
    chunk.writeUInt32LE(number);
    writeSync(file, chunk);
  }
  closeSync(file);
}
