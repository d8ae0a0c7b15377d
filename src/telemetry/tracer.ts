import type { Span, SpanAttributes, TraceContext } from "../trace.js";

/** A request as a trace shows it. */
export interface RequestSpan {
  readonly name: string;
  readonly attributes: SpanAttributes;
  /** On the clock of performance.now(). */
  readonly startedAt: number;
  /** Of the caller; undefined: a trace begins here. */
  readonly parent: TraceContext | undefined;
}

/** Records requests and the steps below them, and sends them to a collector. Nothing about the collector holds anything up. */
export interface Tracer {
  begin(request: RequestSpan): Span;
  /** Sends what waits. Resolves when it is sent, or cannot be. */
  close(): Promise<void>;
}

/** What counts the spans. */
export interface SpanCounts {
  spansExported(spans: number): void;
  spansDropped(spans: number, reason: "queue_full" | "export_failed"): void;
}

export interface TracerOptions {
  readonly version: string;
  readonly instanceId: string;
  /** OTEL_… */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether spans tell the command lines of what is started. */
  readonly showsCommands: boolean;
  readonly counts: SpanCounts;
  readonly warn: (message: string) => void;
}

/** What a header of the collector may hold is as secret as a token. */
export const SECRET_VARIABLES = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const SPOKEN = "http/protobuf";

/** Undefined when the environment names no collector. OpenTelemetry is a file of its own, which nobody else loads. */
export function loadTracer(options: TracerOptions): Tracer | undefined {
  const { env, warn } = options;
  const firstOf = (names: readonly string[]) => names.map((name) => env[name]?.trim()).find((value) => value);
  if (firstOf(ENDPOINTS) === undefined || env.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  if ((env.OTEL_TRACES_EXPORTER ?? "otlp") !== "otlp") return undefined;
  const protocol = firstOf(PROTOCOLS) ?? SPOKEN;
  if (protocol !== SPOKEN) {
    warn(`no traces are exported: OTEL_EXPORTER_OTLP_PROTOCOL is ${protocol}, and only ${SPOKEN} is spoken`);
    return undefined;
  }
  // The build puts it beside the daemon.
  const { createOtlpTracer } = require("otlp-tracer") as typeof import("./otlp-tracer.js");
  return createOtlpTracer(options);
}
