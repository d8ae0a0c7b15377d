import type { AuditLog } from "../audit/audit-log.js";
import type { Call } from "../call.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { CallsInProgress } from "./calls-in-progress.js";
import { recordCall } from "./end-call.js";

export interface SubcallParts {
  readonly calls: CallsInProgress;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Undefined: none is kept. */
  readonly audit: AuditLog | undefined;
}

/** Whose fault it is that a call failed. */
const FAULTS = ["unknown", "deadline_exceeded", "unimplemented", "internal", "unavailable", "data_loss"];

/**
 * What one request may hold several of, each with an account like any other call's. `run` never rejects; it says on the call how it went.
 * @param parent the request that asked for it, which may be over before.
 * @param procedure `mcp/sandbox_exec`.
 */
export function createSubcallRunner({ calls, metrics, logger, audit }: SubcallParts) {
  return async (parent: Call, procedure: string, run: (call: Call) => Promise<void>): Promise<void> => {
    const own = {
      bytesIn: 0,
      bytesOut: 0,
      code: undefined,
      cause: undefined,
      processId: undefined,
      subject: undefined,
      denial: undefined,
    };
    using span = parent.trace.begin(procedure, { "picod.request.id": parent.requestId });
    const call: Call = { ...parent, ...own, procedure, startedAt: performance.now(), trace: span };
    await calls.count("working", call, () => run(call));
    const { code = "unknown", processId } = call;
    metrics.callEnded(procedure, code, performance.now() - call.startedAt);
    recordCall({ metrics, logger, audit }, call);
    span.set({ "picod.process.id": processId, "picod.code": code });
    if (FAULTS.includes(code)) span.fail(code);
  };
}
