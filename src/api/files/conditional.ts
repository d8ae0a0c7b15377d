import type { IncomingHttpHeaders } from "node:http";
import type { EntryInfo } from "../../filesystem/entry-info.js";

/** What tells one state of a file from another. */
export interface Validators {
  /** In quotes, strong. */
  readonly etag: string;
  /** In whole seconds, which is all that HTTP can say. */
  readonly modified: Date;
}

const NS_PER_SECOND = 1_000_000_000n;

export function validatorsOf({ etag, modifiedTimeNs }: Pick<EntryInfo, "etag" | "modifiedTimeNs">): Validators {
  const sinceSecond = ((modifiedTimeNs % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  return { etag: `"${etag}"`, modified: new Date(Number((modifiedTimeNs - sinceSecond) / 1_000_000n)) };
}

/**
 * Whether a request goes on, in the order of RFC 9110, section 13.2.2: `failed` is 412 and `unchanged` 304. Without validators the file does
 * not exist. Dates that are none are ignored.
 */
export function judgeConditions(
  method: string,
  headers: IncomingHttpHeaders,
  validators: Validators | undefined,
): "proceed" | "failed" | "unchanged" {
  const reads = method === "GET" || method === "HEAD";
  const { "if-match": match, "if-none-match": noneMatch } = headers;
  const unmodifiedSince = toTime(headers["if-unmodified-since"]);
  if (match !== undefined) {
    if (!matches(match, validators, "strong")) return "failed";
  } else if (unmodifiedSince !== undefined && validators !== undefined && validators.modified.getTime() > unmodifiedSince) {
    return "failed";
  }
  const modifiedSince = toTime(headers["if-modified-since"]);
  if (noneMatch !== undefined) {
    if (matches(noneMatch, validators, "weak")) return reads ? "unchanged" : "failed";
  } else if (reads && modifiedSince !== undefined && validators !== undefined && validators.modified.getTime() <= modifiedSince) {
    return "unchanged";
  }
  return "proceed";
}

/** Whether the parts that are asked for are those of this state of the file; otherwise all of it is sent. */
export function isRangeOfThis(ifRange: string | undefined, { etag, modified }: Validators): boolean {
  if (ifRange === undefined || ifRange === etag) return true;
  return !ifRange.includes('"') && toTime(ifRange) === modified.getTime();
}

/** `*` matches whatever exists; a weak tag is equal to no strong one. */
function matches(header: string, validators: Validators | undefined, comparison: "strong" | "weak"): boolean {
  if (validators === undefined) return false;
  if (header.trim() === "*") return true;
  const tags = [...header.matchAll(/(W\/)?("[^"]*")/g)];
  return tags.some(([, weak, tag]) => tag === validators.etag && (weak === undefined || comparison === "weak"));
}

/** Milliseconds; undefined when it is no date. */
function toTime(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? "");
  return Number.isNaN(time) ? undefined : time;
}
