import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { EventLoopWatch } from "../telemetry/event-loop-watch.js";
import { CallsInProgress } from "./calls-in-progress.js";

/** Calls that one line names. */
const MAX_NAMED = 10;

export interface StallLogParts {
  /** 0: off. */
  readonly thresholdMs: number;
  readonly liveProcesses: () => number;
  readonly metrics: Pick<Metrics, "eventLoopLagged" | "eventLoopStalled">;
  readonly logger: Logger;
  /** A call begins that is not everybody's, as those are that look after the daemon's health. */
  readonly onCall: () => void;
}

/** Knows the calls, and says which of them ran when the event loop was held up: nobody was answered meanwhile. */
export function watchCalls({ thresholdMs, liveProcesses, metrics, logger, onCall }: StallLogParts): CallsInProgress {
  const calls: CallsInProgress = new CallsInProgress((kind) => {
    watch.wake();
    if (kind !== "public") onCall();
  });
  const watch = new EventLoopWatch({
    thresholdMs,
    isInUse: () => calls.size > 0 || liveProcesses() > 0,
    onLag: (lagMs) => metrics.eventLoopLagged(lagMs),
    onStall({ durationMs, cpuMs }) {
      metrics.eventLoopStalled();
      const now = performance.now();
      const ran = calls.since(now - durationMs);
      const shown = ran.slice(0, MAX_NAMED).map(({ procedure, requestId, startedAt, processId }) => {
        return { procedure, requestId, ageMs: Math.round(now - startedAt), processId };
      });
      const line = { stallMs: Math.round(durationMs), cpuMs: Math.round(cpuMs), callsRunning: ran.length, calls: shown };
      logger.warn({ ...line, processes: liveProcesses() }, "event loop stalled");
    },
  });
  return calls;
}
