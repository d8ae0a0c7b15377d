import type { Call } from "../call.js";
import type { Logger } from "../logger.js";

/** Asked all the time by probes and scrapers. */
const CHATTY = ["GET /healthz", "GET /readyz", "GET /health", "GET /v1/health", "GET /metrics", "/grpc.health.v1.Health/Check"];
/** Of a path that somebody made up; those of our own are shorter. */
const MAX_PROCEDURE_LENGTH = 200;
const FAULTS_OF_OURS = ["internal", "unknown", "data_loss"];

/** The one line of a request, written when its answer has left. Never its payload, its token, or a command line. */
export function writeAccessLine(logger: Logger, call: Call): void {
  const { procedure, requestId, peer, bytesIn, bytesOut, processId, code = "unknown", cause, caller } = call;
  const durationMs = Math.round((performance.now() - call.startedAt) * 1000) / 1000;
  const shown = procedure.slice(0, MAX_PROCEDURE_LENGTH);
  const line = {
    procedure: shown,
    code,
    durationMs,
    requestId,
    peer,
    bytesIn,
    bytesOut,
    processId,
    caller: caller?.name,
    how: caller?.how,
  };
  if (FAULTS_OF_OURS.includes(code)) logger.error({ ...line, err: cause }, "call failed");
  else if (CHATTY.includes(procedure)) logger.debug(line, "call ended");
  else logger.info(line, "call ended");
}
