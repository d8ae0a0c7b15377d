import type { Interceptor } from "@connectrpc/connect";
import type { Metrics } from "../metrics.js";
import { authInterceptor } from "./auth.js";
import { errorInterceptor } from "./errors.js";
import { inputInterceptor } from "./input.js";
import { loggingInterceptor } from "./logging.js";
import { createMetricsInterceptor } from "./metrics.js";

/** The chain, outermost first: what logs and counts sees the code that the error interceptor gave. */
export function createInterceptors(metrics: Metrics): Interceptor[] {
  return [loggingInterceptor, createMetricsInterceptor(metrics), errorInterceptor, authInterceptor, inputInterceptor];
}
