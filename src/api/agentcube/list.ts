import { PicodError } from "../../errors/picod-error.js";
import type { Access } from "../../filesystem/access.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { listDirectory } from "../../filesystem/list-directory.js";
import { sendListing } from "../files/send-listing.js";
import type { HttpExchange } from "../http-route.js";
import { goMode } from "./go-mode.js";
import { goTime } from "./go-time.js";
import type { Workspace } from "./workspace.js";

/** GET /api/files: the entries of a directory, by the bytes of their names. */
export async function listFiles(workspace: Workspace, exchange: HttpExchange): Promise<void> {
  const { query, call, abortSignal } = exchange;
  const asked = query.get("path") ?? "";
  if (asked === "") throw new PicodError("INVALID_ARGUMENT", "Missing 'path' query parameter");
  const access = workspace.access(call.caller);
  await sendListing(exchange, ['{"files":[', "]}"], batches(access, workspace.resolve(access, asked), abortSignal));
}

async function* batches(access: Access, path: string, abortSignal: AbortSignal): AsyncGenerator<object[], void, void> {
  for await (const { entries } of listDirectory(access, path, 1, abortSignal)) yield entries.map(toListed);
}

function toListed(entry: EntryInfo): object {
  const { name, size, kind, modifiedTimeNs } = entry;
  return { name, size: Number(size), modified: goTime(modifiedTimeNs), mode: goMode(entry), is_dir: kind === "directory" };
}
