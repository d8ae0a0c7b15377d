import { TraceFlags } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { SpanCounts } from "./tracer.js";

/**
 * Stands on both sides of what makes batches: in front of it nothing more gets in than may wait, what is being sent included, and behind
 * it the outcome of every batch is counted.
 */
export class BoundedExport implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #maxWaiting: number;
  readonly #counts: SpanCounts;
  #waiting = 0;

  constructor(exporter: SpanExporter, maxWaiting: number, counts: SpanCounts) {
    this.#exporter = exporter;
    this.#maxWaiting = maxWaiting;
    this.#counts = counts;
  }

  before(batches: SpanProcessor): SpanProcessor {
    return {
      onStart: (span, context) => batches.onStart(span, context),
      onEnd: (span) => {
        if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
        if (this.#waiting >= this.#maxWaiting) return this.#counts.spansDropped(1, "queue_full");
        this.#waiting++;
        batches.onEnd(span);
      },
      forceFlush: () => batches.forceFlush(),
      shutdown: () => batches.shutdown(),
    };
  }

  export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      this.#waiting -= spans.length;
      if (result.code === ExportResultCode.SUCCESS) this.#counts.spansExported(spans.length);
      else this.#counts.spansDropped(spans.length, "export_failed");
      onResult(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}
