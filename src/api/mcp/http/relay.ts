import type { HttpExchange } from "../../http-route.js";

const EVENT_ID = /^id: (\S+)$/m;

export interface RelayOptions {
  /** Called with the id of every event that goes out. */
  readonly onEvent: (id: string) => void;
  /** Whether a stream that has nothing to send at the moment is over. */
  readonly isOver: () => boolean;
}

/** Sends what the SDK answers; false when the caller has gone before its end. */
export async function relay(exchange: HttpExchange, response: Response, options: RelayOptions): Promise<boolean> {
  const { status, body } = response;
  // What Node decides by itself, and HTTP/2 forbids.
  const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== "connection"));
  if (!headers["content-type"]?.startsWith("text/event-stream") || body === null) {
    exchange.send(status, headers, await response.text());
    return true;
  }
  if (!exchange.begin(headers, status)) {
    await body.cancel();
    return true;
  }
  return sendEvents(exchange, body, options);
}

async function sendEvents({ abortSignal, write }: HttpExchange, body: ReadableStream<Uint8Array>, options: RelayOptions) {
  const reader = body.getReader();
  const onAbort = () => void reader.cancel().catch(() => undefined);
  abortSignal.addEventListener("abort", onAbort);
  if (abortSignal.aborted) onAbort();
  try {
    for (;;) {
      const next = reader.read();
      if (options.isOver() && !(await isSettled(next))) return true;
      const { done, value } = await next;
      if (done) return !abortSignal.aborted;
      const id = EVENT_ID.exec(Buffer.from(value).toString("latin1", 0, 200))?.[1];
      if (id !== undefined) options.onEvent(id);
      await write(value);
    }
  } finally {
    abortSignal.removeEventListener("abort", onAbort);
    await reader.cancel();
  }
}

/** Whether what is there already answers it. */
function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))]);
}
