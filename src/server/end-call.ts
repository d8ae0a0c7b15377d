import type { Call } from "../call.js";
import { writeAccessLine } from "./access-log.js";
import type { RequestHandling } from "./gate.js";
import { endRequestSpan } from "./request-span.js";

/** Tells everybody who keeps account of calls that one is over: its answer has left. @param status of it, for plain HTTP. */
export function endCall({ metrics, logger, audit, tracer }: RequestHandling, call: Call, status = 200): void {
  metrics.transferred(call.bytesIn, call.bytesOut);
  writeAccessLine(logger, call);
  audit?.callEnded(call);
  if (tracer !== undefined) endRequestSpan(call, status);
}
