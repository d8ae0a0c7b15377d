import type { Call } from "../call.js";
import { writeAccessLine } from "./access-log.js";
import type { RequestHandling } from "./gate.js";
import { endRequestSpan } from "./request-span.js";

/** Tells everybody who keeps account of calls that one is over: its answer has left. @param status of it, for plain HTTP. */
export function endCall(handling: RequestHandling, call: Call, status = 200): void {
  recordCall(handling, call);
  if (handling.tracer !== undefined) endRequestSpan(call, status);
}

/** All but the trace, of which a request is a part of its own. */
export function recordCall({ metrics, logger, audit }: Pick<RequestHandling, "metrics" | "logger" | "audit">, call: Call): void {
  metrics.transferred(call.bytesIn, call.bytesOut);
  writeAccessLine(logger, call);
  audit?.callEnded(call);
}
