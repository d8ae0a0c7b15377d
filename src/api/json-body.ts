import { PicodError } from "../errors/picod-error.js";
import type { HttpExchange } from "./http-route.js";

const MAX_JSON_BYTES = 4 * 1024 * 1024;
const LARGE_BYTES = 1024 * 1024;

/** For those whose contract tells it from other faults of a body. */
export class BodyTooLarge extends PicodError {
  constructor(maxBytes: number) {
    super("INVALID_ARGUMENT", `invalid body: more than ${maxBytes} bytes`);
  }
}

export interface JsonBodyOptions {
  /** It may call itself something else. */
  readonly anyType?: boolean;
  /** 4 MiB by default. */
  readonly maxBytes?: number;
  /** Awaited when more than 1 MiB has come, before more of it is taken. */
  readonly whenLarge?: () => Promise<void>;
}

/** Reads a body that is JSON; none is an empty object. @throws INVALID_ARGUMENT when it is too large or is not JSON. */
export async function readJson({ body, request }: HttpExchange, options: JsonBodyOptions = {}): Promise<unknown> {
  const { anyType = false, maxBytes = MAX_JSON_BYTES, whenLarge } = options;
  const type = request.headers["content-type"] ?? "";
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (bytes <= LARGE_BYTES && bytes + chunk.length > LARGE_BYTES) await whenLarge?.();
    bytes += chunk.length;
    if (bytes > maxBytes) throw new BodyTooLarge(maxBytes);
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
