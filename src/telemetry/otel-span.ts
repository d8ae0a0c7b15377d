import {
  type Attributes,
  type Context,
  type Span as Recorded,
  ROOT_CONTEXT,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { ATTR_ERROR_TYPE } from "@opentelemetry/semantic-conventions";
import type { Span, SpanAttributes, TraceContext } from "../trace.js";

export interface NewSpan {
  readonly name: string;
  readonly options: SpanOptions;
  /** Where it belongs. */
  readonly above: Context;
  readonly startedAt?: number;
}

/** A span of OpenTelemetry as the daemon uses it. Contexts are handed on by hand: nothing looks for the one that is active. */
export class OtelSpan implements Span {
  readonly showsCommands: boolean;
  readonly #tracer: Tracer;
  readonly #span: Recorded;
  readonly #startedAt: number;
  /** By the clock of the wall as it is now: a machine that was suspended has moved away from what it was at the daemon's start. */
  readonly #startTime: number;

  /** @param startedAt on the clock of performance.now(). */
  constructor(tracer: Tracer, { name, options, above, startedAt = performance.now() }: NewSpan, showsCommands: boolean) {
    this.#tracer = tracer;
    this.#startedAt = startedAt;
    this.#startTime = Date.now() - (performance.now() - startedAt);
    this.#span = tracer.startSpan(name, { ...options, startTime: this.#startTime }, above);
    this.showsCommands = showsCommands;
  }

  get context(): TraceContext {
    const { traceId, spanId, traceFlags, traceState } = this.#span.spanContext();
    const flags = traceFlags.toString(16).padStart(2, "0");
    return { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: traceState?.serialize() };
  }

  begin(name: string, attributes: SpanAttributes = {}): Span {
    const above = trace.setSpan(ROOT_CONTEXT, this.#span);
    return new OtelSpan(this.#tracer, { name, options: { attributes: toAttributes(attributes) }, above }, this.showsCommands);
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(toAttributes(attributes));
  }

  fail(kind: string): void {
    this.#span.setAttribute(ATTR_ERROR_TYPE, kind).setStatus({ code: SpanStatusCode.ERROR });
  }

  [Symbol.dispose](): void {
    this.#span.end(this.#startTime + (performance.now() - this.#startedAt));
  }
}

export function toAttributes(attributes: SpanAttributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
