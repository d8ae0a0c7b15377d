import { PathFilter } from "../../filesystem/patterns/path-filter.js";
import { readArchive } from "../../filesystem/read-archive.js";
import { writeArchive } from "../../filesystem/write-archive.js";
import type { Sandbox } from "../../sandbox.js";
import { decodeUrlPath, type NamedFile, resolveUrlPath } from "../../url-path.js";
import { invalid } from "../fields.js";
import { contentDisposition } from "../files/content-disposition.js";
import { AnnouncedDigests } from "../files/digests.js";
import { showFileError } from "../files/file-errors.js";
import { isOn } from "../files/query.js";
import type { HttpExchange, HttpRoute } from "../http-route.js";

/** Directories as one tar stream: ReadArchive and WriteArchive for curl and browsers. */
export function createArchiveRoutes(sandbox: Sandbox): HttpRoute[] {
  const resolve = ({ parameters, query, call }: HttpExchange): NamedFile =>
    resolveUrlPath(sandbox, decodeUrlPath(parameters.path ?? ""), query.get("user") ?? "", call.caller);
  const common = { path: "/v1/archive/{path...}", showError: showFileError } as const;
  return [
    {
      ...common,
      method: "GET",
      requires: "files:read",
      transfers: true,
      handle: (exchange) => sendArchive(resolve(exchange), exchange),
    },
    {
      ...common,
      method: "PUT",
      requires: "files:write",
      streamsBody: true,
      transfers: true,
      handle: (exchange) => unpackArchive(resolve(exchange), exchange),
    },
  ];
}

/**
 * GET: `?gzip`, `?include=` and `?exclude=` (repeatable), `?gitignore`, `?skip_unreadable`. Its length is not known before its end: an error on
 * the way breaks the connection.
 */
async function sendArchive({ access, path }: NamedFile, exchange: HttpExchange): Promise<void> {
  const { query, begin, writeThrough, abortSignal } = exchange;
  const gzip = isOn(query, "gzip");
  const patterns = { include: query.getAll("include"), exclude: query.getAll("exclude"), gitignore: isOn(query, "gitignore") };
  const options = { gzip, filter: new PathFilter(patterns), skipUnreadable: isOn(query, "skip_unreadable") };
  for await (const event of readArchive(access, path, options, abortSignal)) {
    if (event.kind === "opened") {
      const name = `${event.entry.name === "/" ? "root" : event.entry.name}.tar${gzip ? ".gz" : ""}`;
      const isWanted = begin({
        "content-type": gzip ? "application/gzip" : "application/x-tar",
        "content-disposition": contentDisposition("attachment", name),
        "x-content-type-options": "nosniff",
      });
      if (!isWanted) return;
    } else if (event.kind === "chunk") {
      await writeThrough(event.chunk);
      abortSignal.throwIfAborted();
    }
  }
}

/**
 * PUT: `?atomic`, `?max_bytes=`, `?max_entries=`, `?preserve_owner`; gzip is recognised. Digests of RFC 9530 are verified before the end, with
 * `?atomic` before anything is visible.
 */
async function unpackArchive({ access, path }: NamedFile, exchange: HttpExchange): Promise<void> {
  const { request, query, bodyInBulk, sendJson, abortSignal } = exchange;
  const digests = new AnnouncedDigests(request.headers);
  const options = {
    atomic: isOn(query, "atomic"),
    maxBytes: toCount(query, "max_bytes"),
    maxEntries: toCount(query, "max_entries"),
    preserveOwner: isOn(query, "preserve_owner"),
  };
  async function* chunks() {
    yield* digests.watch(bodyInBulk());
    abortSignal.throwIfAborted();
    digests.verify();
  }
  const { entries, bytes, sha256 } = await writeArchive(access, path, options, chunks(), abortSignal);
  sendJson(200, { path, entries: Number(entries), bytes: Number(bytes), sha256 });
}

function toCount(query: URLSearchParams, name: string): bigint | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d{1,18}$/.test(text)) throw invalid(name, `${JSON.stringify(text)} must be a whole number`);
  return BigInt(text);
}
