import { hash } from "node:crypto";
import { readConfigFile } from "../config-file.js";
import type { KnownCaller } from "./known-callers.js";
import { parsePathPrefixes } from "./path-prefixes.js";
import { isScope, SCOPES, type Scope } from "./scopes.js";
import { ConfigError, parseToken } from "./token.js";

const MAX_SCOPES_FILE_BYTES = 1024 * 1024;
const KEYS = ["name", "token", "token_sha256", "certificate", "scopes", "paths", "capability", "expires"];
const CREDENTIALS = ["token", "token_sha256", "certificate"] as const;
const NAME = /^[\w.@/:-]{1,64}$/;
/** What the log calls callers whom no file names. */
const TAKEN_NAMES = ["daemon", "anonymous", "envd", "agentcube"];
const CERTIFICATE_NAME = /^(uri|dns|email|cn):.+$/s;

export interface ScopesFile {
  readonly callers: readonly KnownCaller[];
  readonly worldReadable: boolean;
}

/**
 * Reads `{"callers": [{name, token | token_sha256 | certificate, scopes, paths?, capability?, expires?}]}`.
 * @throws ConfigError naming the file, the entry and the field; nothing of a broken file counts.
 */
export function readScopesFile(path: string): ScopesFile {
  const { text, worldReadable } = readConfigFile(path, "the scopes", MAX_SCOPES_FILE_BYTES);
  try {
    return { callers: parseScopes(text), worldReadable };
  } catch (error) {
    throw new ConfigError(`invalid scopes file ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** @throws Error naming the entry and the field, and never a token. */
export function parseScopes(text: string): KnownCaller[] {
  const file = parseJson(text);
  if (!isObject(file) || !Array.isArray(file.callers)) throw new Error('expected {"callers": […]}');
  const unknown = Object.keys(file).find((key) => key !== "callers");
  if (unknown !== undefined) throw new Error(`${JSON.stringify(unknown)} is not a field; only "callers" is`);
  const callers = file.callers.map((entry, index) => {
    try {
      return parseEntry(entry);
    } catch (error) {
      const name = isObject(entry) && typeof entry.name === "string" ? ` (${JSON.stringify(entry.name)})` : "";
      throw new Error(`callers[${index}]${name}: ${(error as Error).message}`);
    }
  });
  for (const field of ["name", "digest", "certificate"] as const) assertDistinct(callers, field);
  return callers;
}

function parseEntry(entry: unknown): KnownCaller {
  if (!isObject(entry)) throw new Error("it is not an object");
  const unknown = Object.keys(entry).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new Error(`${JSON.stringify(unknown)} is none of ${KEYS.join(", ")}`);
  const { name } = entry;
  if (typeof name !== "string" || !NAME.test(name))
    throw new Error(`name: expected 1 to 64 of the characters A-Z a-z 0-9 _ . @ / : -`);
  if (TAKEN_NAMES.includes(name)) throw new Error("name: the log calls others by it");
  const given = CREDENTIALS.filter((key) => entry[key] !== undefined);
  if (given.length !== 1)
    throw new Error(`expected exactly one of ${CREDENTIALS.join(", ")}, got ${given.join(" and ") || "none"}`);
  const scopes = parseScopeNames(entry.scopes);
  const pathPrefixes = entry.paths === undefined ? undefined : parsePathPrefixes(entry.paths, scopes);
  const expiresAtMs = entry.expires === undefined ? undefined : parseTime(entry.expires);
  const { capability: capabilityName } = entry;
  if (capabilityName !== undefined && (typeof capabilityName !== "string" || capabilityName === ""))
    throw new Error("capability: expected the name of one of the policy");
  const known = {
    name,
    scopes,
    ...(pathPrefixes === undefined ? {} : { pathPrefixes }),
    ...(capabilityName === undefined ? {} : { capabilityName }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  };
  const { certificate } = entry;
  if (certificate === undefined) return { caller: { ...known, how: "token" }, digest: parseDigest(entry) };
  if (typeof certificate !== "string" || !CERTIFICATE_NAME.test(certificate))
    throw new Error('certificate: expected "uri:…", "dns:…", "email:…" or "cn:…"');
  return { caller: { ...known, how: "certificate" }, certificate };
}

function parseDigest({ token, token_sha256: digest }: Readonly<Record<string, unknown>>): string {
  if (digest !== undefined) {
    if (typeof digest !== "string" || !/^[0-9a-f]{64}$/i.test(digest))
      throw new Error("token_sha256: expected 64 hexadecimal digits");
    return digest.toLowerCase();
  }
  if (typeof token !== "string") throw new Error("token: expected a string");
  return hash("sha256", parseToken(token, "this entry"));
}

function parseScopeNames(value: unknown): ReadonlySet<Scope> {
  if (!Array.isArray(value) || value.length === 0) throw new Error(`scopes: expected a list of ${SCOPES.join(", ")}`);
  const wrong = value.find((scope) => typeof scope !== "string" || !isScope(scope));
  if (wrong !== undefined) throw new Error(`scopes: ${JSON.stringify(wrong)} is none of ${SCOPES.join(", ")}`);
  return new Set(value as Scope[]);
}

/** RFC 3339. */
function parseTime(value: unknown): number {
  const ms =
    typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value)
      ? Date.parse(value)
      : Number.NaN;
  if (Number.isNaN(ms)) throw new Error("expires: expected a time such as 2027-01-31T12:00:00Z");
  return ms;
}

function assertDistinct(callers: readonly KnownCaller[], field: "name" | "digest" | "certificate"): void {
  const seen = new Map<string, string>();
  for (const known of callers) {
    const value = field === "name" ? known.caller.name : known[field];
    if (value === undefined) continue;
    const other = seen.get(value);
    if (other !== undefined) {
      const what = field === "digest" ? "the same token" : field === "name" ? `the name ${value}` : `the certificate ${value}`;
      throw new Error(`${JSON.stringify(other)} and ${JSON.stringify(known.caller.name)} both have ${what}`);
    }
    seen.set(value, known.caller.name);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes what it stumbles over, which may be a token.
    throw new Error("it is not JSON");
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
