import { createGunzip } from "node:zlib";
import { invalidArchive } from "./invalid-archive.js";

const CHUNK_BYTES = 256 * 1024;

/**
 * Decompresses chunks on a thread, no further ahead than a few. What follows the compressed data is ignored, and may be left in `chunks`.
 * @throws INVALID_ARCHIVE.
 */
export async function* gunzipChunks(chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  const over = new Promise<void>((resolve) => gunzip.once("end", resolve).once("close", resolve));
  const feed = async () => {
    try {
      while (!gunzip.readableEnded && !gunzip.destroyed) {
        const { done, value } = await chunks.next();
        if (done) return void gunzip.end();
        // After its end it takes no more, and does not say so.
        await Promise.race([over, new Promise<void>((resolve) => gunzip.write(value, () => resolve()))]);
      }
    } catch (error) {
      gunzip.destroy(error as Error);
    }
  };
  const feeding = feed();
  try {
    for await (const chunk of gunzip) yield chunk;
    await feeding;
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The first header was one: this is what follows the last compressed data.
    if (message === "incorrect header check") return undefined;
    if (code?.startsWith("Z_")) throw invalidArchive("gzip", message);
    throw error;
  } finally {
    gunzip.destroy();
  }
}

/** Whether compressed data begins so. */
export function isGzip(beginning: Uint8Array): boolean {
  return beginning[0] === 0x1f && beginning[1] === 0x8b;
}
