import type { HttpExchange } from "../http-route.js";
import { RestError } from "./rest-errors.js";

const MAX_BYTES = 4 * 1024 * 1024;

/** A body as text, whatever its type. @throws 400 when it is larger than 4 MiB. */
export async function readText({ body }: HttpExchange): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new RestError(400, `the body is larger than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
