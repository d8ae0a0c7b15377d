import { type Context, DiagLogLevel, diag, ROOT_CONTEXT, SpanKind, trace } from "@opentelemetry/api";
import { parseKeyPairsIntoRecord, TraceState } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from "@opentelemetry/semantic-conventions";
import type { TraceContext } from "../trace.js";
import { BoundedExport } from "./bounded-export.js";
import { OtelSpan, toAttributes } from "./otel-span.js";
import { samplerOf } from "./sampler.js";
import type { Tracer, TracerOptions } from "./tracer.js";

/** A path may be 16 KiB long, and thousands of spans wait for a collector that is gone. */
const MAX_ATTRIBUTE_LENGTH = 1024;
/** The defaults of OpenTelemetry's specification, which its variables change. */
const QUEUE = { size: 2048, batch: 512, delayMs: 5_000, exportTimeoutMs: 30_000 };

/** Sends spans to OTLP's HTTP endpoint, configured by the variables of OpenTelemetry's specification. */
export function createOtlpTracer(options: TracerOptions): Tracer {
  const { env, version, instanceId, showsCommands, counts, warn } = options;
  const complain = (message: string, ...more: unknown[]) => warn(`OpenTelemetry: ${[message, ...more.map(String)].join(" ")}`);
  diag.setLogger({ error: complain, warn: complain, info() {}, debug() {}, verbose() {} }, { logLevel: DiagLogLevel.WARN });
  const number = (name: string, otherwise: number) => {
    const value = Number(env[name]);
    return value > 0 && Number.isSafeInteger(value) ? value : otherwise;
  };
  const maxQueueSize = number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE.size);
  const headers = {
    ...parseKeyPairsIntoRecord(env.OTEL_EXPORTER_OTLP_HEADERS),
    ...parseKeyPairsIntoRecord(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
  };
  const bounded = new BoundedExport(new OTLPTraceExporter({ headers }), maxQueueSize, counts);
  const batches = new BatchSpanProcessor({
    exporter: bounded,
    maxQueueSize,
    maxExportBatchSize: Math.min(maxQueueSize, number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", QUEUE.batch)),
    scheduledDelayMillis: number("OTEL_BSP_SCHEDULE_DELAY", QUEUE.delayMs),
    exportTimeoutMillis: number("OTEL_BSP_EXPORT_TIMEOUT", QUEUE.exportTimeoutMs),
  });
  const own = {
    [ATTR_SERVICE_NAME]: "picod",
    [ATTR_SERVICE_VERSION]: version,
    [ATTR_SERVICE_INSTANCE_ID]: instanceId,
  };
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env.OTEL_TRACES_SAMPLER, env.OTEL_TRACES_SAMPLER_ARG, warn),
    spanLimits: { attributeValueLengthLimit: number("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", MAX_ATTRIBUTE_LENGTH) },
    spanProcessors: [bounded.before(batches)],
  });
  const tracer = provider.getTracer("picod", version);
  return {
    begin({ name, attributes, startedAt, parent }) {
      const options = { kind: SpanKind.SERVER, attributes: toAttributes(attributes) };
      return new OtelSpan(tracer, { name, options, above: contextOf(parent), startedAt }, showsCommands);
    },
    close: () => provider.shutdown(),
  };
}

/** The caller's, which has been found well-formed. */
function contextOf(parent: TraceContext | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const [, traceId = "", spanId = "", flags = ""] = parent.traceparent.split("-");
  const traceState = parent.tracestate === undefined ? {} : { traceState: new TraceState(parent.tracestate) };
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true, ...traceState };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}
