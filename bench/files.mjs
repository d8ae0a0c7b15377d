import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CHUNK_BYTES = 1024 * 1024;
/** The file to download, an upload, and the temporary file that it may have beside it. */
const COPIES = 4;

/** What the jobs read. @throws Error when the disk has no room for what they write. */
export function createFiles(directory, load) {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize < load.bulkBytes * COPIES) {
    throw new Error(`${directory} has only ${Math.floor((bavail * bsize) / CHUNK_BYTES)} MiB free: set TMPDIR to another place`);
  }
  const files = { directory, text: join(directory, "text"), bulk: join(directory, "bulk"), small: join(directory, "small") };
  writeFileSync(files.text, `${"x".repeat(63)}\n`.repeat(CHUNK_BYTES / 64));
  for (let written = 0; written < load.bulkBytes; written += CHUNK_BYTES) {
    writeFileSync(files.bulk, Buffer.alloc(CHUNK_BYTES, written / CHUNK_BYTES), { flag: "a" });
  }
  mkdirSync(files.small);
  for (let index = 0; index < load.smallFiles; index++) writeFileSync(join(files.small, String(index)), "x".repeat(1024));
  return files;
}
