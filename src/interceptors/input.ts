import type { Interceptor } from "@connectrpc/connect";
import { withMessage } from "./with-message.js";

/** A façade that waits for the caller's next message is told that the deadline passed or that the daemon stops. */
export const inputInterceptor: Interceptor = (next) => (request) =>
  next(request.stream ? withMessage(request, untilAborted(request.message, request.signal)) : request);

function untilAborted<T>(messages: AsyncIterable<T>, abortSignal: AbortSignal): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const inner = messages[Symbol.asyncIterator]();
      let rejectPending: ((reason: unknown) => void) | undefined;
      // One listener for the call rather than one for each message.
      abortSignal.addEventListener("abort", () => rejectPending?.(abortSignal.reason), { once: true });
      return {
        next() {
          if (abortSignal.aborted) return Promise.reject(abortSignal.reason);
          return new Promise<IteratorResult<T>>((resolve, reject) => {
            rejectPending = reject;
            inner.next().then(resolve, reject);
          });
        },
        async return(value?: unknown) {
          return (await inner.return?.(value)) ?? { done: true, value };
        },
      };
    },
  };
}
