import { createGzip } from "node:zlib";

const CHUNK_BYTES = 256 * 1024;

/** Compresses chunks on a thread. A chunk may be used again when the next is asked for. */
export async function* gzipChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gzip = createGzip({ chunkSize: CHUNK_BYTES });
  const compressed: Uint8Array[] = [];
  gzip.on("data", (chunk: Uint8Array) => compressed.push(chunk));
  const done = (step: (callback: (error?: Error | null) => void) => unknown) =>
    new Promise<void>((resolve, reject) => {
      step((error) => (error ? reject(error) : resolve()));
    });
  try {
    for await (const chunk of chunks) {
      await done((callback) => gzip.write(chunk, callback));
      yield* compressed.splice(0);
    }
    await done((callback) => {
      gzip.once("end", () => callback());
      gzip.once("error", callback);
      gzip.end();
    });
    yield* compressed;
  } finally {
    gzip.destroy();
  }
}
