import type { IncomingHttpHeaders } from "node:http";
import { METADATA_PREFIX } from "./entry-info.js";
import { RestError } from "./rest-errors.js";

const HEADER_PREFIX = "x-metadata-";
const MAX_KEY_BYTES = 246;
const MAX_BYTES = 4096;
const PRINTABLE = /^[\x20-\x7e]*$/;

/** What `X-Metadata-<key>` headers give a file. @throws 400. */
export function metadataOf(headers: IncomingHttpHeaders): ReadonlyMap<string, string> {
  const metadata = new Map<string, string>();
  for (const [name, value = ""] of Object.entries(headers)) {
    if (!name.startsWith(HEADER_PREFIX) || name === HEADER_PREFIX) continue;
    metadata.set(name.slice(HEADER_PREFIX.length), String(value));
  }
  let bytes = 0;
  for (const [key, value] of metadata) {
    if (!PRINTABLE.test(key) || !PRINTABLE.test(value)) throw invalid(`${JSON.stringify(key)} is not printable ASCII`);
    if (key.length > MAX_KEY_BYTES) throw invalid(`the key ${key.slice(0, 40)}… is longer than ${MAX_KEY_BYTES} bytes`);
    bytes += METADATA_PREFIX.length + key.length + value.length;
  }
  if (bytes > MAX_BYTES) throw invalid(`it takes ${bytes} bytes, more than ${MAX_BYTES}`);
  return metadata;
}

function invalid(why: string): RestError {
  return new RestError(400, `invalid metadata: ${why}`);
}
