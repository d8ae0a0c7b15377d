import type { Interceptor } from "@connectrpc/connect";
import type { Requirement } from "../auth/scopes.js";
import type { Metrics } from "../metrics.js";
import { createAuthInterceptor } from "./auth.js";
import { errorInterceptor } from "./errors.js";
import { inputInterceptor } from "./input.js";
import { loggingInterceptor } from "./logging.js";
import { createMetricsInterceptor } from "./metrics.js";

/** The chain, outermost first. @param requirements what each RPC asks of its caller, by path: what logs and counts sees the code that the error interceptor gave. */
export function createInterceptors(metrics: Metrics, requirements: ReadonlyMap<string, Requirement>): Interceptor[] {
  return [
    loggingInterceptor,
    createMetricsInterceptor(metrics),
    errorInterceptor,
    createAuthInterceptor(requirements),
    inputInterceptor,
  ];
}
