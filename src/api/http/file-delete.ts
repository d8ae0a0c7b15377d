import { PicodError } from "../../errors/picod-error.js";
import { listDirectory } from "../../filesystem/list-directory.js";
import { remove } from "../../filesystem/remove.js";
import { stat } from "../../filesystem/stat.js";
import type { NamedFile } from "../../url-path.js";
import { judgeConditions, validatorsOf } from "../files/conditional.js";
import { isOn } from "../files/query.js";
import type { HttpExchange } from "../http-route.js";

/** DELETE of a file, of a link itself, or of a directory: of one with something in it only with `?recursive=true`. */
export async function deleteFile(file: NamedFile, { request, query, abortSignal, send }: HttpExchange): Promise<void> {
  const { access, path, isBase } = file;
  const existing = validatorsOf(stat(access, path, false));
  if (judgeConditions("DELETE", request.headers, existing) === "failed") {
    throw new PicodError("PRECONDITION_FAILED", `cannot remove ${path}: its etag is ${existing.etag}`, { path });
  }
  // Here a switch without a value is off: what it would remove is gone.
  const recursive = query.get("recursive") !== "" && isOn(query, "recursive");
  if (isBase) await clear(file, recursive, abortSignal);
  else await remove(access, path, { recursive }, abortSignal);
  send(204, {}, "");
}

/** Where paths begin stays. What cannot be removed does not keep the rest. */
async function clear({ access, path }: NamedFile, recursive: boolean, abortSignal: AbortSignal): Promise<void> {
  if (!recursive || (path === "/" && access.root.realPath === "/")) {
    const why = recursive ? "" : "; pass recursive=true to clear its contents";
    throw new PicodError("ROOT_PROTECTED", `cannot delete the sandbox root${why}`, { path });
  }
  const failures: unknown[] = [];
  for await (const { entries } of listDirectory(access, path, 1, abortSignal)) {
    for (const entry of entries) {
      await remove(access, entry.path, { recursive, missingOk: true }, abortSignal).catch((error) => failures.push(error));
      abortSignal.throwIfAborted();
    }
  }
  if (failures.length > 0) throw failures[0];
}
