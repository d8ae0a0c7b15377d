import type { OutgoingHttpHeaders } from "node:http";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import type { Validators } from "./conditional.js";
import { contentDisposition } from "./content-disposition.js";
import { inlineType, OCTET_STREAM } from "./content-type.js";
import { isOn } from "./query.js";

/** Of every answer with a body that somebody in the sandbox has made: a browser neither guesses what it is nor runs any of it. */
export const HARMLESS: OutgoingHttpHeaders = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
};

/** What stays the same for all forms of a file: also of a 304. */
export function validatorHeaders({ etag, modified }: Validators): OutgoingHttpHeaders {
  return {
    etag,
    "last-modified": modified.toUTCString(),
    // It may be kept, but not shown again without asking.
    "cache-control": "private, no-cache",
    vary: "accept-encoding",
  };
}

/**
 * `?download` makes a browser save the file, under its own name or the one that is given; `?inline` lets it show what is harmless. Without
 * them it is octets, as the standard has it. @throws INVALID_ARGUMENT.
 */
export function contentHeaders({ name }: EntryInfo, query: URLSearchParams): OutgoingHttpHeaders {
  const download = query.get("download");
  if (download !== null) {
    const disposition = contentDisposition("attachment", download === "" ? name : download);
    return { ...HARMLESS, "content-type": OCTET_STREAM, "content-disposition": disposition };
  }
  if (!isOn(query, "inline")) return { ...HARMLESS, "content-type": OCTET_STREAM };
  return { ...HARMLESS, "content-type": inlineType(name), "content-disposition": contentDisposition("inline", name) };
}
