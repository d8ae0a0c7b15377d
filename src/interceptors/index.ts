import type { Interceptor } from "@connectrpc/connect";
import type { AuditLog } from "../audit/audit-log.js";
import type { Requirement } from "../auth/scopes.js";
import type { Metrics } from "../metrics.js";
import { createAuditInterceptor } from "./audit.js";
import { createAuthInterceptor } from "./auth.js";
import { errorInterceptor } from "./errors.js";
import { inputInterceptor } from "./input.js";
import { loggingInterceptor } from "./logging.js";
import { createMetricsInterceptor } from "./metrics.js";
import { createTracingInterceptor } from "./tracing.js";

/**
 * The chain, outermost first: what logs and counts sees the code that the error interceptor gave.
 * @param requirements what each RPC asks of its caller, by path.
 * @param audit undefined: none is kept.
 */
export function createInterceptors(
  metrics: Metrics,
  requirements: ReadonlyMap<string, Requirement>,
  audit: AuditLog | undefined,
  isTraced: boolean,
): Interceptor[] {
  return [
    loggingInterceptor,
    createMetricsInterceptor(metrics),
    errorInterceptor,
    createAuthInterceptor(requirements),
    inputInterceptor,
    ...(audit === undefined ? [] : [createAuditInterceptor(audit)]),
    ...(isTraced ? [createTracingInterceptor()] : []),
  ];
}
