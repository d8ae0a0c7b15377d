import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip, gzipSync } from "node:zlib";
import { PicodError } from "../../errors/picod-error.js";

/** Less than that fits into a packet as it is. */
const WORTHWHILE_BYTES = 1024;
const SAMPLE_BYTES = 16 * 1024;
const WORTHWHILE_RATIO = 0.9;
/** Callers are next door: what counts is that it is quick. */
const LEVEL = 1;
const CHUNK_BYTES = 64 * 1024;

/**
 * Whether to send gzip. Most HTTP libraries list it without being told to, and an answer that is compressed has no length, which clients of the
 * agent-sandbox standard look at, and no parts. So a bare list states no preference: gzip is sent when it weighs more than identity
 * (`gzip, identity;q=0.5`), or is acceptable and the query asks for it. @throws nothing: a malformed weight is 0.
 */
export function wantsGzip(acceptEncoding: string | undefined, asked: boolean): "no" | "if-worthwhile" | "always" {
  if (acceptEncoding === undefined) return asked ? "if-worthwhile" : "no";
  const weights = weightsOf(acceptEncoding);
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  const identity = weights.get("identity") ?? weights.get("*");
  if (gzip === 0) return "no";
  if (identity === 0) return "always";
  return asked || (identity !== undefined && gzip > identity) ? "if-worthwhile" : "no";
}

/** What `Accept-Encoding` says of each coding, `*` included. */
export function weightsOf(acceptEncoding: string): ReadonlyMap<string, number> {
  return new Map(
    acceptEncoding
      .split(",")
      .filter((item) => item.trim() !== "")
      .map((item) => {
        const [coding = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
        const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
        return [coding, Number(weight) || 0] as const;
      }),
  );
}

/** Judged by the beginning of what would be compressed. */
export function isWorthCompressing(beginning: Uint8Array): boolean {
  if (beginning.length < WORTHWHILE_BYTES) return false;
  const sample = beginning.subarray(0, SAMPLE_BYTES);
  return gzipSync(sample, { level: LEVEL }).length < sample.length * WORTHWHILE_RATIO;
}

/** The chunks that come in may be used again as soon as the next one is asked for. */
export function compress(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: LEVEL, chunkSize: CHUNK_BYTES });
  return through(copied(chunks), gzip);
}

/** @throws INVALID_ARGUMENT when it is not gzip, or ends too early. */
export async function* decompress(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  try {
    yield* through(chunks, createGunzip({ chunkSize: CHUNK_BYTES }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== "string" || !code.startsWith("Z_")) throw error;
    throw new PicodError("INVALID_ARGUMENT", `invalid body: it is not what Content-Encoding says: ${(error as Error).message}`);
  }
}

async function* through(chunks: AsyncIterable<Uint8Array>, coder: NodeJS.ReadWriteStream & AsyncIterable<string | Buffer>) {
  // Its failure is what the loop below throws.
  void pipeline(Readable.from(chunks, { highWaterMark: 1 }), coder).catch(() => undefined);
  for await (const chunk of coder) yield chunk as Buffer;
}

async function* copied(chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) yield Buffer.from(chunk);
}
