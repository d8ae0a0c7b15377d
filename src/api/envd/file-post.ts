import { PicodError } from "../../errors/picod-error.js";
import { InPlaceWriter } from "../../filesystem/writing/write-in-place.js";
import { errnoName } from "../../os/system-error.js";
import type { Sandbox } from "../../sandbox.js";
import { inBlocks } from "../files/blocks.js";
import { decompress } from "../files/content-coding.js";
import { formBoundary, formParts } from "../files/multipart.js";
import type { HttpExchange } from "../http-route.js";
import type { EnvdAccess } from "./access.js";
import { METADATA_PREFIX, toMetadata } from "./entry-info.js";
import { metadataOf } from "./metadata-headers.js";
import { accessOf, pathOf } from "./named-file.js";
import { RestError } from "./rest-errors.js";
import type { EnvdState } from "./state.js";

/** A small file is one write, and those who watch are told of one. */
const BLOCK_BYTES = 256 * 1024;
const FULL = ["ENOSPC", "EDQUOT"];

/** One file that was written. */
interface Written {
  readonly path: string;
  readonly name: string;
  readonly type: "file";
  readonly metadata?: Record<string, string>;
}

/** POST /files: raw, or a form with any number of files. What was written before an error stays. */
export async function postFiles(sandbox: Sandbox, state: EnvdState, exchange: HttpExchange): Promise<void> {
  const { request, query, sendJson } = exchange;
  const content = decoded(exchange);
  const access = accessOf(sandbox, state, query.get("username"), exchange.call.caller);
  const metadata = metadataOf(request.headers);
  const type = request.headers["content-type"] ?? "";
  const path = query.get("path") ?? undefined;
  const write = (target: string, chunks: AsyncIterable<Uint8Array>) =>
    writeFile(sandbox, access, pathOf(access, state, target), chunks, metadata, exchange);
  if (/^application\/octet-stream *(;|$)/i.test(type)) {
    if (path === undefined) throw new RestError(400, "path is required for a raw upload");
    sendJson(200, [await write(path, content)]);
  } else if (/^multipart\//i.test(type)) {
    sendJson(200, await writeParts(content, type, path, write));
  } else {
    throw new RestError(400, `unsupported content type: ${JSON.stringify(type.slice(0, 100))}`);
  }
}

async function writeParts(
  content: AsyncIterable<Uint8Array>,
  type: string,
  path: string | undefined,
  write: (target: string, chunks: AsyncIterable<Uint8Array>) => Promise<Written>,
): Promise<Written[]> {
  const written: Written[] = [];
  const paths = new Set<string>();
  try {
    const boundary = formBoundary(type, /^multipart\/(form-data|mixed) *;/i);
    if (boundary === undefined) throw new RestError(500, "unsupported kind of multipart body");
    for await (const part of formParts(content, boundary)) {
      if (part.name !== "file") continue;
      const target = path ?? part.fileName;
      if (target === undefined) throw new RestError(400, "neither a path nor a file name is given");
      if (paths.has(target)) throw new RestError(400, `you cannot upload multiple files to the same path '${target}'`);
      paths.add(target);
      written.push(await write(target, part.content));
    }
  } catch (error) {
    if (error instanceof PicodError && error.message.startsWith("invalid multipart body"))
      throw new RestError(500, error.message);
    throw error;
  }
  return written;
}

async function writeFile(
  { watches }: Sandbox,
  access: EnvdAccess,
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  metadata: ReadonlyMap<string, string>,
  { request, abortSignal }: HttpExchange,
): Promise<Written> {
  let writer: InPlaceWriter | undefined;
  try {
    for await (const block of inBlocks(chunks, Math.min(BLOCK_BYTES, Number(request.headers["content-length"] ?? BLOCK_BYTES)))) {
      abortSignal.throwIfAborted();
      // Nothing is touched before it has arrived: what is one block is written as a whole or not at all.
      writer ??= await open(watches, access, path);
      await writer.write(block);
    }
    writer ??= await open(watches, access, path);
    writer.replaceXattrs(METADATA_PREFIX, metadata);
    const kept = toMetadata(writer.readXattrs(METADATA_PREFIX));
    const name = path.slice(path.lastIndexOf("/") + 1);
    return { path, name, type: "file", ...(Object.keys(kept).length === 0 ? {} : { metadata: kept }) };
  } catch (error) {
    throw toRestError(error, path, request.headers["content-length"]);
  } finally {
    writer?.close();
  }
}

/** Empty. */
async function open(watches: Sandbox["watches"], access: EnvdAccess, path: string): Promise<InPlaceWriter> {
  const writer = new InPlaceWriter(access, path);
  try {
    // The kernel makes one of two writes that nobody has been told of: emptying is the first. And whoever watches above new parents has to
    // be told of them to watch them as well.
    if (writer.replaces || writer.madeParents) await watches.settled();
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

function toRestError(error: unknown, path: string, length: string | undefined): unknown {
  const errno = errnoName(error) ?? "";
  if (errno === "EISDIR") return new RestError(400, `path is a directory: ${path}`);
  if (errno === "ENOENT") return new RestError(500, (error as Error).message);
  if (!FULL.includes(errno)) return error;
  const attempted = length === undefined ? "" : `attempted to write ${length} bytes: `;
  return new RestError(507, `${attempted}not enough disk space available`);
}

/** @throws 400 for another coding than gzip. */
function decoded(exchange: HttpExchange): AsyncIterable<Uint8Array> {
  const coding = exchange.request.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (coding === "" || coding === "identity") return exchange.bodyInBulk();
  if (coding === "gzip") return decompress(exchange.body);
  throw new RestError(400, `unsupported content encoding: ${coding.slice(0, 100)}`);
}
