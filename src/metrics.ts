import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** How late timers are is sampled so often. The library's 10 ms wake an idle daemon a hundred times a second. */
const EVENT_LOOP_SAMPLE_MS = 100;

/** What the daemon counts, as Prometheus text on /metrics. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  callEnded(procedure: string, code: string, durationMs: number): void;
  /** A request that was answered before it became a call: no token, no such path, nonsense. */
  requestRefused(status: number): void;
  transferred(bytesIn: number, bytesOut: number): void;
  processEnded(reason: string): void;
  auditWritten(lines: number): void;
  auditLost(lines: number): void;
  spansExported(spans: number): void;
  spansDropped(spans: number, reason: string): void;
}

const DURATION_BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 300];

export function createMetrics(version: string, liveProcesses: () => number): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS });
  new Gauge({ name: "picod_build_info", help: "Always 1.", labelNames: ["version"], registers }).labels(version).set(1);
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
  const audited = new Counter({ name: "picod_audit_lines_total", help: "Lines written to the audit log.", registers });
  const unaudited = new Counter({ name: "picod_audit_lines_lost_total", help: "Lines the audit log could not take.", registers });
  const exported = new Counter({ name: "picod_trace_spans_exported_total", help: "Spans the collector has taken.", registers });
  const dropped = new Counter({
    name: "picod_trace_spans_dropped_total",
    help: "Spans that the collector did not take.",
    labelNames: ["reason"],
    registers,
  });
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
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
    auditWritten: (lines) => audited.inc(lines),
    auditLost: (lines) => unaudited.inc(lines),
    spansExported: (spans) => exported.inc(spans),
    spansDropped: (spans, reason) => dropped.inc({ reason }, spans),
  };
}
