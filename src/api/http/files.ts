import { stat } from "../../filesystem/stat.js";
import type { Sandbox } from "../../sandbox.js";
import { decodeUrlPath, type NamedFile, resolveUrlPath, throughLinks } from "../../url-path.js";
import { wantsGzip } from "../files/content-coding.js";
import { showFileError } from "../files/file-errors.js";
import { contentHeaders } from "../files/file-headers.js";
import { isOn } from "../files/query.js";
import { type FileAnswer, sendFile } from "../files/send-file.js";
import type { HttpExchange, HttpRoute } from "../http-route.js";
import { sendDirectory } from "./directory-get.js";
import { deleteFile } from "./file-delete.js";
import { storeFile } from "./file-put.js";

const PATH = "/v1/files/{path...}";

/** Files as the Kubernetes agent-sandbox runtime standard (KEP-539.2) has them, and more: see the README. */
export function createFileRoutes(sandbox: Sandbox): HttpRoute[] {
  const resolve = ({ parameters, query, call }: HttpExchange): NamedFile =>
    resolveUrlPath(sandbox, decodeUrlPath(parameters.path ?? ""), query.get("user") ?? "", call.caller);

  async function get(exchange: HttpExchange): Promise<void> {
    const file = throughLinks(resolve(exchange));
    const { kind } = stat(file.access, file.path, true);
    if (kind === "directory") await sendDirectory(file, exchange);
    else await sendFile(file, answerOf(exchange), exchange);
  }

  function answerOf({ request, query }: HttpExchange): FileAnswer {
    const gzip = wantsGzip(request.headers["accept-encoding"]?.toString(), isOn(query, "gzip"));
    return { describe: (entry) => contentHeaders(entry, query), gzip };
  }

  const common = { path: PATH, showError: showFileError } as const;
  return [
    { ...common, method: "GET", requires: "files:read", isSignable: true, transfers: true, handle: get },
    {
      ...common,
      method: "PUT",
      requires: "files:write",
      isSignable: true,
      streamsBody: true,
      transfers: true,
      handle: (exchange) => storeFile(throughLinks(resolve(exchange)), exchange),
    },
    {
      ...common,
      method: "DELETE",
      requires: "files:write",
      handle: (exchange) => deleteFile(throughLinks(resolve(exchange), "before-last"), exchange),
    },
  ];
}
