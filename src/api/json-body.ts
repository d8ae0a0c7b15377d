import { PicodError } from "../errors/picod-error.js";
import type { HttpExchange } from "./http-route.js";

const MAX_JSON_BYTES = 4 * 1024 * 1024;

/**
 * Reads a body that is JSON; none is an empty object. @param anyType it may call itself something else.
 * @throws INVALID_ARGUMENT when it is too large or is not JSON.
 */
export async function readJson({ body, request }: HttpExchange, anyType = false): Promise<unknown> {
  const type = request.headers["content-type"] ?? "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_JSON_BYTES) throw new PicodError("INVALID_ARGUMENT", `invalid body: more than ${MAX_JSON_BYTES} bytes`);
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  // A browser sends other types across origins without asking first.
  if (!anyType && !/^application\/json\b/i.test(type))
    throw new PicodError("INVALID_ARGUMENT", "invalid body: expected application/json");
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (error) {
    throw new PicodError("INVALID_ARGUMENT", `invalid body: ${(error as Error).message}`);
  }
}
