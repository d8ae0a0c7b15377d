import { hash } from "node:crypto";
import { isSameSecret } from "./secret.js";

const PARAMETERS = ["path", "username", "signature", "signature_expiration"];

/** Undefined when the query of /files can be understood. */
export function malformed(query: URLSearchParams): string | undefined {
  const repeated = PARAMETERS.find((name) => query.getAll(name).length > 1);
  if (repeated !== undefined) return `Invalid format for parameter ${repeated}: it is given more than once`;
  const expiration = query.get("signature_expiration");
  if (expiration === null || /^[+-]?\d{1,18}$/.test(expiration)) return undefined;
  return "Invalid format for parameter signature_expiration: it is no whole number";
}

/** Why a signed address lets nobody in; undefined when it does. @param nowMs since 1970. */
export function signatureRefusal(query: URLSearchParams, method: string, token: string, nowMs: number): string | undefined {
  const signature = query.get("signature");
  if (signature === null) return "missing signature query parameter";
  const expiration = query.get("signature_expiration");
  const expires = expiration === null ? undefined : BigInt(expiration.replace("+", ""));
  const operation = method === "GET" ? "read" : "write";
  const parts = [query.get("path") ?? "", operation, query.get("username") ?? "", token];
  const text = [...parts, ...(expires === undefined ? [] : [expires])].join(":");
  const expected = `v1_${hash("sha256", text, "base64").replaceAll("=", "")}`;
  if (!isSameSecret(expected, signature)) return "invalid signature";
  return expires !== undefined && expires < BigInt(Math.floor(nowMs / 1000)) ? "signature is already expired" : undefined;
}
