import type { Interceptor } from "@connectrpc/connect";
import { observed } from "./observed.js";
import { withMessage } from "./with-message.js";

type Next = Parameters<Interceptor>[0];
type Request = Parameters<ReturnType<Interceptor>>[0];
type Response = Awaited<ReturnType<Next>>;

/** How a call ended: `error` is undefined for success, and `abandoned` when the caller stopped taking messages. */
export interface CallEnd {
  readonly error: unknown;
  readonly abandoned: boolean;
}

/**
 * Runs a call and reports its end once. A try around `next` sees the end of unary calls only: a stream returns before its handler
 * has begun, so its messages are watched too.
 */
export async function onEnd(next: Next, request: Request, report: (end: CallEnd) => void): Promise<Response> {
  let response: Response;
  try {
    response = await next(request);
  } catch (error) {
    report({ error, abandoned: false });
    throw error;
  }
  if (response.stream) return withMessage(response, watch(response.message, report));
  report({ error: undefined, abandoned: false });
  return response;
}

function watch<T>(messages: AsyncIterable<T>, report: (end: CallEnd) => void): AsyncIterable<T> {
  let reported = false;
  const once = (error: unknown, abandoned: boolean) => {
    if (!reported) report({ error, abandoned });
    reported = true;
  };
  return observed(messages, {
    ended: () => once(undefined, false),
    failed(error) {
      once(error, false);
      return error;
    },
    left: (error) => once(error, true),
  });
}
