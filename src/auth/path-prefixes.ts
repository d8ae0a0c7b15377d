import { posix } from "node:path";
import type { Scope } from "./scopes.js";

/**
 * The directories that a caller's file operations are confined to, as requests name them. An empty list confines to nothing at all.
 * @throws Error for what is no list of clean absolute paths, and when `process` is among the scopes: a command reaches every file.
 */
export function parsePathPrefixes(value: unknown, scopes: ReadonlySet<Scope>): readonly string[] {
  if (!Array.isArray(value)) throw new Error("paths: expected a list of absolute paths");
  for (const path of value) {
    if (typeof path !== "string" || !path.startsWith("/") || path.includes("\0") || clean(path) !== path) {
      throw new Error(`paths: ${JSON.stringify(path)} is not an absolute path without "." and ".." and a slash at the end`);
    }
  }
  if (scopes.has("process")) throw new Error("paths: the scope process defeats them, since a command reaches every file");
  return value;
}

function clean(path: string): string {
  return path === "/" ? path : posix.normalize(path).replace(/\/$/, "");
}
