import { createHash } from "node:crypto";
import { read } from "node:fs";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";

const CHUNK_BYTES = 256 * 1024;
/** Below it a thread takes longer to begin than the bytes to be hashed. */
const THREAD_FROM_BYTES = 16 * 1024 * 1024;

/** As text, because what is bundled into one file has no other file to begin a thread with. */
const HASH_IN_THREAD = `
const { createHash } = require("node:crypto");
const { readSync } = require("node:fs");
const { parentPort, workerData: { fd, bytes } } = require("node:worker_threads");
const hash = createHash("sha256");
const buffer = Buffer.allocUnsafeSlow(1024 * 1024);
for (let position = 0; position < bytes; ) {
  const count = readSync(fd, buffer, 0, Math.min(buffer.length, bytes - position), position);
  if (count === 0) break;
  hash.update(buffer.subarray(0, count));
  position += count;
}
parentPort.postMessage(hash.digest("hex"));
`;

/**
 * SHA-256 of the first bytes of a file, in lower-case hexadecimal; of a large one on a thread of its own. Resolves or rejects only when
 * the descriptor is no longer used. @throws errno of read(2), the signal's reason.
 */
export async function hashFile(fd: number, bytes: number, abortSignal: AbortSignal): Promise<string> {
  if (bytes < THREAD_FROM_BYTES) return hashHere(fd, bytes, abortSignal);
  try {
    return await hashInThread(fd, bytes, abortSignal);
  } catch (error) {
    // A thread needs descriptors and memory of its own, and there may be none.
    if (!(error instanceof Error && "code" in error && String(error.code).startsWith("ERR_WORKER"))) throw error;
    return hashHere(fd, bytes, abortSignal);
  }
}

async function hashHere(fd: number, bytes: number, abortSignal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.min(CHUNK_BYTES, bytes)));
  for (let position = 0; position < bytes; ) {
    abortSignal.throwIfAborted();
    const { bytesRead } = await promisify(read)(fd, buffer, 0, Math.min(buffer.length, bytes - position), position);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
  return hash.digest("hex");
}

async function hashInThread(fd: number, bytes: number, abortSignal: AbortSignal): Promise<string> {
  abortSignal.throwIfAborted();
  const worker = new Worker(HASH_IN_THREAD, { eval: true, workerData: { fd, bytes }, env: {}, stdin: false });
  const stop = () => void worker.terminate();
  abortSignal.addEventListener("abort", stop);
  try {
    return await new Promise<string>((resolve, reject) => {
      let digest: string | undefined;
      let failure: unknown;
      worker.once("message", (message: string) => {
        digest = message;
      });
      worker.once("error", (error) => {
        failure = error;
      });
      worker.once("exit", () => {
        if (digest !== undefined) resolve(digest);
        else reject(failure ?? abortSignal.reason);
      });
    });
  } finally {
    abortSignal.removeEventListener("abort", stop);
  }
}
