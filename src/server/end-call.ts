import type { Call } from "../call.js";
import { writeAccessLine } from "./access-log.js";
import type { RequestHandling } from "./gate.js";

/** Tells everybody who keeps account of calls that one is over: its answer has left. */
export function endCall({ metrics, logger, audit }: Pick<RequestHandling, "metrics" | "logger" | "audit">, call: Call): void {
  metrics.transferred(call.bytesIn, call.bytesOut);
  writeAccessLine(logger, call);
  audit?.callEnded(call);
}
