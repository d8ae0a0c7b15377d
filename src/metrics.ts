import { getHeapStatistics } from "node:v8";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The library would wake an idle daemon all the time to see how late timers are: see telemetry/event-loop-watch.ts instead. */
const NEVER_MS = 2 ** 31 - 1;
const LIBRARY_LAGS = ["min", "max", "mean", "stddev", "p50", "p90", "p99"].map((name) => `nodejs_eventloop_lag_${name}_seconds`);
const LAG_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What the daemon counts, as Prometheus text on /metrics. */
export interface Metrics {
  readonly contentType: string;
  /** Begins to collect what Node tells of itself, at the latest when it is asked for: what that needs takes time to load. */
  collectNodes(): void;
  text(): Promise<string>;
  callEnded(procedure: string, code: string, durationMs: number): void;
  /** A request that was answered before it became a call: no token, no such path, nonsense. */
  requestRefused(status: number): void;
  transferred(bytesIn: number, bytesOut: number): void;
  processEnded(reason: string): void;
  /** @param missing where output is missing that a process has written. */
  outputTrimmed(missing: "result" | "follower", bytes: number): void;
  auditWritten(lines: number): void;
  auditLost(lines: number): void;
  eventLoopLagged(lagMs: number): void;
  eventLoopStalled(): void;
  spansExported(spans: number): void;
  spansDropped(spans: number, reason: string): void;
}

const DURATION_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 300];

export function createMetrics(version: string, liveProcesses: () => number): Metrics {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({ name: "picod_build_info", help: "Always 1.", labelNames: ["version"], registers }).labels(version).set(1);
  new Gauge({
    name: "picod_heap_limit_bytes",
    help: "What the heap may grow to.",
    registers,
    collect() {
      this.set(getHeapStatistics().heap_size_limit);
    },
  });
  new Gauge({
    name: "picod_processes_live",
    help: "Processes that were started and have not ended.",
    registers,
    collect() {
      this.set(liveProcesses());
    },
  });
  const calls = new Counter({ name: "picod_rpc_total", help: "Calls ended.", labelNames: ["procedure", "code"], registers });
  const durations = new Histogram({
    name: "picod_rpc_duration_seconds",
    help: "From the arrival of a call to its end.",
    labelNames: ["procedure"],
    buckets: DURATION_BUCKETS_SECONDS,
    registers,
  });
  const refused = new Counter({
    name: "picod_requests_refused_total",
    help: "Requests answered before they became a call, by HTTP status.",
    labelNames: ["status"],
    registers,
  });
  const received = new Counter({ name: "picod_received_bytes_total", help: "Body bytes received.", registers });
  const sent = new Counter({ name: "picod_sent_bytes_total", help: "Body bytes sent.", registers });
  const ended = new Counter({ name: "picod_processes_ended_total", help: "Processes ended.", labelNames: ["reason"], registers });
  const trimmed = new Counter({
    name: "picod_output_trimmed_bytes_total",
    help: "Bytes of output left out of results, or missed by followers.",
    labelNames: ["missing_in"],
    registers,
  });
  const audited = new Counter({ name: "picod_audit_lines_total", help: "Lines written to the audit log.", registers });
  const unaudited = new Counter({ name: "picod_audit_lines_lost_total", help: "Lines the audit log could not take.", registers });
  const lags = new Histogram({
    name: "picod_event_loop_lag_seconds",
    help: "How late timers were, sampled while calls or processes are there.",
    buckets: LAG_BUCKETS_SECONDS,
    registers,
  });
  const stalls = new Counter({ name: "picod_event_loop_stalls_total", help: "Lags beyond --stall-threshold.", registers });
  const exported = new Counter({ name: "picod_trace_spans_exported_total", help: "Spans the collector has taken.", registers });
  const dropped = new Counter({
    name: "picod_trace_spans_dropped_total",
    help: "Spans that the collector did not take.",
    labelNames: ["reason"],
    registers,
  });
  const collectNodes = once(() => {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
    for (const name of LIBRARY_LAGS) registry.removeSingleMetric(name);
  });
  return {
    contentType: registry.contentType,
    collectNodes,
    text() {
      collectNodes();
      return registry.metrics();
    },
    callEnded(procedure, code, durationMs) {
      calls.inc({ procedure, code });
      durations.observe({ procedure }, durationMs / 1000);
    },
    requestRefused: (status) => refused.inc({ status }),
    transferred(bytesIn, bytesOut) {
      received.inc(bytesIn);
      sent.inc(bytesOut);
    },
    processEnded: (reason) => ended.inc({ reason }),
    outputTrimmed: (missing_in, bytes) => trimmed.inc({ missing_in }, bytes),
    auditWritten: (lines) => audited.inc(lines),
    auditLost: (lines) => unaudited.inc(lines),
    eventLoopLagged: (lagMs) => lags.observe(lagMs / 1000),
    eventLoopStalled: () => stalls.inc(),
    spansExported: (spans) => exported.inc(spans),
    spansDropped: (spans, reason) => dropped.inc({ reason }, spans),
  };
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (!hasRun) run();
    hasRun = true;
  };
}
