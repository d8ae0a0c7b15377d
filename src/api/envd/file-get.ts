import { PicodError } from "../../errors/picod-error.js";
import { stat } from "../../filesystem/stat.js";
import { errnoName } from "../../os/system-error.js";
import type { Sandbox } from "../../sandbox.js";
import { parseRanges } from "../files/byte-ranges.js";
import { wantsGzip, weightsOf } from "../files/content-coding.js";
import { contentDisposition } from "../files/content-disposition.js";
import { inlineType } from "../files/content-type.js";
import { HARMLESS } from "../files/file-headers.js";
import { type FileAnswer, sendFile } from "../files/send-file.js";
import type { HttpExchange } from "../http-route.js";
import type { EnvdAccess } from "./access.js";
import { accessOf, pathOf } from "./named-file.js";
import { RestError } from "./rest-errors.js";
import type { EnvdState } from "./state.js";

/** About the bytes of the file itself: they are not compressed. */
const ABOUT_IDENTITY = ["range", "if-range", "if-none-match", "if-modified-since"];

/** GET /files. */
export async function getFile(sandbox: Sandbox, state: EnvdState, exchange: HttpExchange): Promise<void> {
  const { query } = exchange;
  const access = accessOf(sandbox, state, query.get("username"), exchange.call.caller);
  const path = pathOf(access, state, query.get("path") ?? "");
  assertFile(access, path);
  const describe: FileAnswer["describe"] = ({ name }) => ({
    ...HARMLESS,
    "content-type": inlineType(name),
    "content-disposition": contentDisposition("inline", name),
  });
  await sendFile({ access, path }, { describe, gzip: negotiate(exchange) }, exchange);
}

/** @throws 404, 400 for a directory, 500; what the policy denies. */
function assertFile(access: EnvdAccess, path: string): void {
  try {
    if (stat(access, path, true).kind !== "directory") return;
  } catch (error) {
    if (errnoName(error) === "ENOENT") throw new RestError(404, `path '${path}' does not exist`);
    if (error instanceof PicodError) throw error;
    throw new RestError(500, `error getting file info: ${(error as Error).message}`);
  }
  throw new RestError(400, `path '${path}' is a directory`);
}

/**
 * Whoever names gzip alone means it; those that list what they know, as HTTP libraries do unasked, get the file as it is.
 * @throws 406, 416 for a range that is none.
 */
function negotiate({ request: { headers } }: HttpExchange): FileAnswer["gzip"] {
  const accept = headers["accept-encoding"]?.toString();
  const weights = weightsOf(accept ?? "");
  const refusesIdentity = (weights.get("identity") ?? (weights.has("gzip") ? undefined : weights.get("*"))) === 0;
  if (ABOUT_IDENTITY.some((name) => headers[name] !== undefined)) {
    if (refusesIdentity || (weights.get("identity") ?? weights.get("*")) === 0)
      throw new RestError(406, "range and conditional requests are answered with identity alone");
    // Whether it lies within the file is found out later.
    if (headers.range !== undefined && parseRanges(headers.range, 1) === undefined) throw new RestError(416, "invalid range");
    return "no";
  }
  if (weights.get("gzip") === undefined && refusesIdentity) throw new RestError(406, `no acceptable encoding: ${accept}`);
  if (weights.get("gzip") === 0 && refusesIdentity) throw new RestError(406, `no acceptable encoding: ${accept}`);
  return weights.size === 1 && (weights.get("gzip") ?? 0) > 0 ? "always" : wantsGzip(accept, false);
}
