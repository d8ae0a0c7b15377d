import { PicodError } from "../../errors/picod-error.js";
import { stat } from "../../filesystem/stat.js";
import { FileWriter } from "../../filesystem/write-file.js";
import type { WritePrecondition } from "../../filesystem/writing/write-precondition.js";
import { gather } from "../../gather.js";
import { errnoName } from "../../os/system-error.js";
import type { NamedFile } from "../../url-path.js";
import { invalid } from "../fields.js";
import { judgeConditions, type Validators, validatorsOf } from "../files/conditional.js";
import { decompress } from "../files/content-coding.js";
import { AnnouncedDigests } from "../files/digests.js";
import { validatorHeaders } from "../files/file-headers.js";
import { filePart, formBoundary } from "../files/multipart.js";
import { isOn, toMode } from "../files/query.js";
import type { HttpExchange } from "../http-route.js";

/**
 * PUT of a file: whole, or not at all. All that can be refused is refused before the body is asked for. `?mode=` sets the permission bits
 * exactly, `?sync` lets nothing but the disk's end lose it.
 */
export async function storeFile(file: NamedFile, exchange: HttpExchange): Promise<void> {
  const { request, query, abortSignal, send } = exchange;
  const { headers } = request;
  if (headers["content-range"] !== undefined) throw invalid("Content-Range", "a file is stored as a whole");
  const digests = new AnnouncedDigests(headers);
  const isGzip = toCoding(headers["content-encoding"]) === "gzip";
  const boundary = formBoundary(headers["content-type"]);
  const isExact = !isGzip && boundary === undefined;
  const writer = new FileWriter(file.access, file.path, {
    mode: toMode(query),
    sync: isOn(query, "sync"),
    size: isExact ? toSize(headers["content-length"]) : undefined,
    precondition: preconditionOf(file, exchange),
  });
  try {
    const decoded = isGzip ? gather(decompress(digests.watch(exchange.body))) : digests.watch(exchange.bodyInBulk());
    const content = boundary === undefined ? decoded : filePart(decoded, boundary);
    for await (const chunk of content) await writer.write(chunk);
    abortSignal.throwIfAborted();
    digests.verify();
    const { entry } = await writer.commit();
    // The tag would be that of other bytes than those that were sent.
    send(204, isExact ? validatorHeaders(validatorsOf(entry)) : {}, "");
  } finally {
    writer.close();
  }
}

/**
 * What must still be so when the file becomes visible. A request that names a state of the file, by tag or time, gets exactly that.
 * @throws PRECONDITION_FAILED when it is not so now.
 */
function preconditionOf(file: NamedFile, { request }: HttpExchange): WritePrecondition | undefined {
  const { headers } = request;
  const { "if-match": match, "if-none-match": noneMatch, "if-unmodified-since": unmodifiedSince } = headers;
  if ([match, noneMatch, unmodifiedSince].every((header) => header === undefined)) return undefined;
  const existing = validatorsOfExisting(file);
  if (judgeConditions("PUT", headers, existing) === "failed") {
    const why = existing === undefined ? "it does not exist" : `its etag is ${existing.etag}`;
    throw new PicodError("PRECONDITION_FAILED", `cannot write ${file.path}: ${why}`, { path: file.path });
  }
  if (noneMatch?.trim() === "*") return { kind: "must-not-exist" };
  const namesState = (match !== undefined && match.trim() !== "*") || unmodifiedSince !== undefined;
  return namesState && existing !== undefined ? { kind: "etag", etag: existing.etag.slice(1, -1) } : undefined;
}

export function validatorsOfExisting({ access, path }: NamedFile): Validators | undefined {
  try {
    return validatorsOf(stat(access, path, true));
  } catch (error) {
    if (errnoName(error) === "ENOENT") return undefined;
    throw error;
  }
}

function toCoding(contentEncoding: string | undefined): "identity" | "gzip" {
  const coding = contentEncoding?.trim().toLowerCase() ?? "";
  if (coding === "" || coding === "identity") return "identity";
  if (coding === "gzip" || coding === "x-gzip") return "gzip";
  throw invalid("Content-Encoding", `${JSON.stringify(coding.slice(0, 100))} is neither gzip nor identity`);
}

function toSize(contentLength: string | undefined): bigint | undefined {
  return contentLength === undefined ? undefined : BigInt(contentLength);
}
