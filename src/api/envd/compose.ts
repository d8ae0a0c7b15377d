import { posix } from "node:path";
import { concatenate } from "../../filesystem/concatenate.js";
import type { Sandbox } from "../../sandbox.js";
import type { HttpExchange } from "../http-route.js";
import type { EnvdAccess } from "./access.js";
import { kindOfExisting } from "./directory-methods.js";
import { accessOf, pathOf } from "./named-file.js";
import { RestError } from "./rest-errors.js";
import type { EnvdState } from "./state.js";
import { readText } from "./text-body.js";

/** POST /files/compose: one file of several, which go. */
export async function composeFiles(sandbox: Sandbox, state: EnvdState, exchange: HttpExchange): Promise<void> {
  const { sources, destination, username } = parse(await readText(exchange));
  exchange.call.subject = { paths: [...sources, destination], command: undefined, user: username ?? undefined };
  const access = accessOf(sandbox, state, username, exchange.call.caller);
  const to = pathOf(access, state, destination);
  const from = sources.map((source) => pathOf(access, state, source));
  if (from.includes(to)) throw new RestError(400, `source and destination are the same: ${to}`);
  for (const source of from) assertSource(access, source);
  if (kindOfExisting(access, to) === "directory") throw new RestError(500, `destination is a directory: ${to}`);
  await concatenate(access, from, to, exchange.abortSignal);
  exchange.sendJson(200, { path: to, name: posix.basename(to), type: "file" });
}

function assertSource(access: EnvdAccess, path: string): void {
  const kind = kindOfExisting(access, path);
  if (kind === undefined) throw new RestError(404, `source file not found: ${path}`);
  if (kind !== "file") throw new RestError(400, `source is not a regular file: ${path}`);
}

function parse(text: string): { sources: readonly string[]; destination: string; username: string | null } {
  const fields = parseObject(text);
  const { source_paths: sources, destination, username = null } = fields;
  const isTexts = Array.isArray(sources) && sources.every((each) => typeof each === "string");
  if (!isTexts || sources.length === 0) throw new RestError(400, "source_paths must be a list of at least one path");
  if (typeof destination !== "string" || destination === "") throw new RestError(400, "destination is required");
  if (username !== null && typeof username !== "string") throw new RestError(400, "username must be a string");
  return { sources, destination, username };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null) return body as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new RestError(400, "the body is not a JSON object");
}
