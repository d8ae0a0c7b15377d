import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { callKey } from "../call.js";
import { codeName } from "../errors/code-name.js";
import type { Metrics } from "../metrics.js";
import { onEnd } from "./on-end.js";

/** Counts calls by procedure and code, and their durations. */
export function createMetricsInterceptor(metrics: Metrics): Interceptor {
  return (next) => (request) => {
    const call = request.contextValues.get(callKey);
    return onEnd(next, request, ({ error, abandoned }) => {
      const code = error === undefined ? (abandoned ? Code.Canceled : undefined) : ConnectError.from(error).code;
      metrics.callEnded(call.procedure, code === undefined ? "ok" : codeName(code), performance.now() - call.startedAt);
    });
  };
}
