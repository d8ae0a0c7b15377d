import type { OutgoingHttpHeaders } from "node:http";
import { posix } from "node:path";
import { PicodError } from "../../errors/picod-error.js";
import type { EntryInfo } from "../../filesystem/entry-info.js";
import { stat } from "../../filesystem/stat.js";
import { decodeUrlPath } from "../../url-path.js";
import { wantsGzip } from "../files/content-coding.js";
import { contentDisposition } from "../files/content-disposition.js";
import { inlineType } from "../files/content-type.js";
import { HARMLESS } from "../files/file-headers.js";
import { sendFile } from "../files/send-file.js";
import type { HttpExchange } from "../http-route.js";
import type { Workspace } from "./workspace.js";

/** What Go knows without asking the system. Nothing of it runs in a browser: it is saved, and the headers forbid the rest. */
const TYPES: ReadonlyMap<string, string> = new Map([
  [".css", "text/css; charset=utf-8"],
  [".htm", "text/html; charset=utf-8"],
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".mjs", "text/javascript; charset=utf-8"],
  [".json", "application/json"],
  [".svg", "image/svg+xml"],
  [".wasm", "application/wasm"],
  [".xml", "text/xml; charset=utf-8"],
]);

/** GET /api/files/{path}: the bytes of a file, or the parts that `Range` asks for. */
export async function downloadFile(workspace: Workspace, exchange: HttpExchange): Promise<void> {
  const access = workspace.access(exchange.call.caller);
  const path = workspace.resolve(access, decodeUrlPath(exchange.parameters.path ?? "") || "/");
  if (stat(access, path, true).kind === "directory") {
    throw new PicodError("INVALID_ARGUMENT", "Path is a directory, not a file");
  }
  const gzip = wantsGzip(exchange.request.headers["accept-encoding"]?.toString(), false);
  await sendFile({ access, path }, { describe, gzip }, exchange);
}

function describe({ name }: EntryInfo): OutgoingHttpHeaders {
  return {
    ...HARMLESS,
    "content-type": TYPES.get(posix.extname(name).toLowerCase()) ?? inlineType(name),
    "content-disposition": contentDisposition("attachment", name),
    "content-description": "File Transfer",
    "content-transfer-encoding": "binary",
  };
}
