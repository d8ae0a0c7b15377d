import { createHash, randomBytes } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import { PicodError } from "../../errors/picod-error.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { FileReader, type Span } from "../../filesystem/file-reader.js";
import type { NamedFile } from "../../url-path.js";
import type { HttpExchange } from "../http-route.js";
import { contentRange, parseRanges } from "./byte-ranges.js";
import { isRangeOfThis, judgeConditions, type Validators, validatorsOf } from "./conditional.js";
import { compress, isWorthCompressing, type wantsGzip } from "./content-coding.js";
import { sha256Field, wantsSha256 } from "./digests.js";
import { validatorHeaders } from "./file-headers.js";

/** Files up to this size are answered as a whole: what the kernel says about their length may be wrong. */
const WHOLE_BYTES = 64 * 1024;

/** What each façade decides about the answer. */
export interface FileAnswer {
  /** What kind of content it is, and what to do with it. */
  readonly describe: (entry: EntryInfo) => OutgoingHttpHeaders;
  readonly gzip: ReturnType<typeof wantsGzip>;
}

/** GET and HEAD of a file: all of it, or the parts that `Range` asks for. A file that shrinks meanwhile breaks the connection. */
export async function sendFile(
  { access, path }: Pick<NamedFile, "access" | "path">,
  { describe, gzip }: FileAnswer,
  exchange: HttpExchange,
): Promise<void> {
  const { request } = exchange;
  const reader = new FileReader(access, path);
  try {
    const validators = validatorsOf(reader.entry);
    const verdict = judgeConditions(request.method ?? "", request.headers, validators);
    if (verdict === "failed") throw new PicodError("PRECONDITION_FAILED", `${path} is not what the request expects`, { path });
    if (verdict === "unchanged") {
      exchange.send(304, validatorHeaders(validators), "");
      return;
    }
    const headers = { ...validatorHeaders(validators), ...describe(reader.entry) };
    const spans = partsAskedFor(reader, validators, exchange);
    if (wantsSha256(request.headers["want-repr-digest"])) Object.assign(headers, await reprDigest(reader, exchange));
    if (spans === undefined) await sendWhole(reader, headers, gzip, exchange);
    else await sendParts(reader, headers, spans, exchange);
  } finally {
    reader.close();
  }
}

/** Undefined for all of it. `Range` means something in a GET alone. @throws OFFSET_BEYOND_END when none of the parts is there. */
function partsAskedFor(
  { size, entry }: FileReader,
  validators: Validators,
  { request, response }: HttpExchange,
): readonly Span[] | undefined {
  const { range, "if-range": ifRange } = request.headers;
  if (size === undefined || request.method !== "GET" || !isRangeOfThis(ifRange?.toString(), validators)) return undefined;
  const spans = parseRanges(range, size);
  if (spans?.length !== 0) return spans;
  response.setHeader("content-range", `bytes */${size}`);
  const { path } = entry;
  throw new PicodError("OFFSET_BEYOND_END", `cannot read ${path}: no part of ${range?.slice(0, 100)} is in its ${size} bytes`, {
    path,
  });
}

/** Nothing when the file changed while it was read for it. */
async function reprDigest(reader: FileReader, { abortSignal }: HttpExchange): Promise<OutgoingHttpHeaders> {
  const hash = createHash("sha256");
  for await (const chunk of reader.read(reader.span())) {
    abortSignal.throwIfAborted();
    hash.update(chunk);
  }
  return reader.currentEtag() === reader.entry.etag ? { "repr-digest": sha256Field(hash.digest()) } : {};
}

async function sendWhole(
  reader: FileReader,
  headers: OutgoingHttpHeaders,
  gzip: FileAnswer["gzip"],
  exchange: HttpExchange,
): Promise<void> {
  const { send, begin } = exchange;
  const { size } = reader;
  const chunks = reader.read(reader.span());
  try {
    const beginning = await readBeginning(chunks, size);
    // The digest is that of the file as it is.
    const coding = "repr-digest" in headers ? "no" : gzip;
    if (coding === "always" || (coding === "if-worthwhile" && isWorthCompressing(beginning.bytes))) {
      // It is another sequence of bytes than the file's, and made anew each time.
      const compressed = { ...headers, etag: `W/${headers.etag}`, "content-encoding": "gzip" };
      if (begin(compressed)) await sendChunks(compress(joined(beginning, chunks)), exchange);
      return;
    }
    const ranges = { "accept-ranges": size === undefined ? "none" : "bytes" };
    if (beginning.isAll) {
      send(200, { ...headers, ...ranges }, beginning.bytes);
      return;
    }
    const length = size === undefined ? {} : { "content-length": size };
    if (!begin({ ...headers, ...ranges, ...length })) return;
    const sent = await sendChunks(joined(beginning, chunks), exchange);
    if (size !== undefined) assertSent(reader, sent, size);
  } finally {
    await chunks.return();
  }
}

async function sendParts(
  reader: FileReader,
  headers: OutgoingHttpHeaders,
  spans: readonly Span[],
  exchange: HttpExchange,
): Promise<void> {
  const { begin, writeThrough } = exchange;
  const size = reader.size ?? 0;
  const sendPart = async (span: Span) => assertSent(reader, await sendChunks(reader.read(span), exchange), span.end - span.start);
  const [first] = spans;
  if (spans.length === 1 && first !== undefined) {
    const part = { "content-range": contentRange(first, size), "content-length": first.end - first.start };
    begin({ ...headers, ...part, "accept-ranges": "bytes" }, 206);
    await sendPart(first);
    return;
  }
  const boundary = randomBytes(16).toString("hex");
  const head = (span: Span) =>
    Buffer.from(
      `\r\n--${boundary}\r\ncontent-type: ${headers["content-type"]}\r\ncontent-range: ${contentRange(span, size)}\r\n\r\n`,
    );
  const end = Buffer.from(`\r\n--${boundary}--\r\n`);
  const bytes = spans.reduce((sum, span) => sum + head(span).length + span.end - span.start, end.length);
  const type = `multipart/byteranges; boundary=${boundary}`;
  begin({ ...headers, "content-type": type, "content-length": bytes, "accept-ranges": "bytes" }, 206);
  for (const span of spans) {
    await writeThrough(head(span));
    await sendPart(span);
  }
  await writeThrough(end);
}

interface Beginning {
  readonly bytes: Buffer;
  /** Nothing follows. */
  readonly isAll: boolean;
}

/** So much of a file as decides how to answer. */
async function readBeginning(chunks: AsyncGenerator<Buffer, void, void>, size = 0): Promise<Beginning> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  while (bytes <= WHOLE_BYTES) {
    const next = await chunks.next();
    if (next.done) return { bytes: Buffer.concat(pieces), isAll: true };
    pieces.push(Buffer.from(next.value));
    bytes += next.value.length;
    if (size > WHOLE_BYTES) break;
  }
  return { bytes: Buffer.concat(pieces), isAll: false };
}

async function* joined({ bytes, isAll }: Beginning, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  if (bytes.length > 0) yield bytes;
  if (!isAll) yield* chunks;
}

/** At the pace of whoever takes them. Returns how many bytes they were. */
async function sendChunks(chunks: AsyncIterable<Buffer>, { writeThrough, abortSignal }: HttpExchange): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) {
    await writeThrough(chunk);
    abortSignal.throwIfAborted();
    bytes += chunk.length;
  }
  return bytes;
}

/** What was promised can no longer be kept. */
function assertSent({ entry: { path } }: FileReader, sent: number, promised: number): void {
  if (sent === promised) return;
  throw new PicodError("FILE_SHRANK", `file shrank while it was read: ${path}: ${sent} bytes instead of ${promised}`, { path });
}
