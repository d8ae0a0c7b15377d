import type { IncomingHttpHeaders } from "node:http";

/** W3C trace context, as headers and the environments of commands carry it. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate: string | undefined;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A place in a trace. */
export interface Trace {
  /** What whoever is called from here is told; undefined: there is no trace. */
  readonly context: TraceContext | undefined;
  /** Whether a step may tell the command lines of what it starts. */
  readonly showsCommands: boolean;
  /** Begins a step below this place. */
  begin(name: string, attributes?: SpanAttributes): Span;
}

/** A step of a trace, from `begin` to its disposal. Without tracing it does nothing but pass the context on. */
export interface Span extends Trace, Disposable {
  set(attributes: SpanAttributes): void;
  /** It went wrong. @param kind one of few: the code of an error, say. */
  fail(kind: string): void;
}

/** Passes on what the caller sent, and records nothing. */
class PassedTrace implements Span {
  readonly showsCommands = false;
  readonly context: TraceContext | undefined;

  constructor(context: TraceContext | undefined) {
    this.context = context;
  }

  begin(): Span {
    return this;
  }

  set(): void {}

  fail(): void {}

  [Symbol.dispose](): void {}
}

export const UNTRACED: Span = new PassedTrace(undefined);

/** version-traceid-parentid-flags; later versions may have more behind it. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** The trace of a request when the daemon itself has no part in it. A malformed context is none, as W3C has it. */
export function passOn(headers: IncomingHttpHeaders): Span {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string" || !TRACEPARENT.test(traceparent)) return UNTRACED;
  return new PassedTrace({ traceparent, tracestate: tracestate === undefined ? undefined : String(tracestate) });
}

/** The variables by which a command continues a trace. */
export function toVariables(context: TraceContext | undefined): Record<string, string> {
  if (context === undefined) return {};
  const { traceparent, tracestate } = context;
  return { TRACEPARENT: traceparent, ...(tracestate && { TRACESTATE: tracestate }) };
}
