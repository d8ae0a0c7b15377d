import { PicodError } from "../../errors/picod-error.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { listDirectory } from "../../filesystem/list-directory.js";
import { HARMLESS } from "../files/file-headers.js";
import type { HttpExchange } from "../http-route.js";
import { goMode } from "./go-mode.js";
import { goTime } from "./go-time.js";
import type { Workspace } from "./workspace.js";

/** A listing up to this size is answered as a whole, with its length. */
const WHOLE_BYTES = 1024 * 1024;

const HEADERS = { ...HARMLESS, "content-type": "application/json", "cache-control": "no-store" };

/** GET /api/files: the entries of a directory, by the bytes of their names. */
export async function listFiles(
  workspace: Workspace,
  { query, call, send, begin, writeThrough, abortSignal }: HttpExchange,
): Promise<void> {
  const asked = query.get("path") ?? "";
  if (asked === "") throw new PicodError("INVALID_ARGUMENT", "Missing 'path' query parameter");
  const access = workspace.access(call.caller);
  let text = '{"files":[';
  let begun = false;
  let separator = "";
  for await (const { entries } of listDirectory(access, workspace.resolve(access, asked), 1, abortSignal)) {
    for (const entry of entries) {
      text += separator + JSON.stringify(toListed(entry));
      separator = ",";
    }
    if (text.length < WHOLE_BYTES) continue;
    if (!begun && !begin(HEADERS)) return;
    begun = true;
    await writeThrough(Buffer.from(text));
    abortSignal.throwIfAborted();
    text = "";
  }
  text += "]}";
  if (begun) await writeThrough(Buffer.from(text));
  else send(200, HEADERS, text);
}

function toListed(entry: EntryInfo): object {
  const { name, size, kind, modifiedTimeNs } = entry;
  return { name, size: Number(size), modified: goTime(modifiedTimeNs), mode: goMode(entry), is_dir: kind === "directory" };
}
