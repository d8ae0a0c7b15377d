import type { HttpExchange } from "../http-route.js";
import { HARMLESS } from "./file-headers.js";

/** A listing up to this size is answered as a whole, with its length. */
const WHOLE_BYTES = 1024 * 1024;

const HEADERS = { ...HARMLESS, "content-type": "application/json", "cache-control": "no-store" };

/**
 * Answers with JSON that ends in a list, which is sent as it is made when it is long. @param head up to the list's opening bracket.
 * @param tail from its closing bracket on. @param batches the list.
 */
export async function sendListing(
  { send, begin, writeThrough, abortSignal }: HttpExchange,
  [head, tail]: readonly [head: string, tail: string],
  batches: AsyncIterable<readonly object[]>,
): Promise<void> {
  let text = head;
  let begun = false;
  let separator = "";
  for await (const batch of batches) {
    for (const each of batch) {
      text += separator + JSON.stringify(each);
      separator = ",";
    }
    if (text.length < WHOLE_BYTES) continue;
    if (!begun && !begin(HEADERS)) return;
    begun = true;
    await writeThrough(Buffer.from(text));
    abortSignal.throwIfAborted();
    text = "";
  }
  text += tail;
  if (begun) await writeThrough(Buffer.from(text));
  else send(200, HEADERS, text);
}
