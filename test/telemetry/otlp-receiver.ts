import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import definitions from "otlp-definitions/build/src/generated/root.js";
import { eventually } from "../helpers/eventually.js";

/** A span as OTLP has it, its ids in hex. */
export interface ReceivedSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: string;
  readonly durationMs: number;
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A collector on the loopback interface that decodes with the official definitions of OTLP. Use with `await using`. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** Resolves with the first span, past or future, for which `matches`. */
  waitFor(matches: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface OtlpSpan {
  readonly name: string;
  readonly kind: string | number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
  readonly status?: { readonly code?: string | number };
}

export interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

/** Of its declarations, which are not those of a module that imports this one, as much as is used here. */
interface Definitions {
  readonly opentelemetry: {
    readonly proto: { readonly collector: { readonly trace: { readonly v1: { ExportTraceServiceRequest: Decoder } } } };
  };
}

interface Decoder {
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): object;
}

const { ExportTraceServiceRequest } = (definitions as unknown as Definitions).opentelemetry.proto.collector.trace.v1;

/** @param answer what to say to each request, or to say nothing, ever. */
export async function startOtlpReceiver(answer: (() => number) | "nothing" = () => 200): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver["requests"] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    requests.push({ path: request.url ?? "", headers: request.headers });
    if (answer === "nothing") return;
    void buffer(request).then((body) => {
      const status = answer();
      if (status === 200) spans.push(...decode(body));
      response.writeHead(status, { "content-type": "application/x-protobuf" }).end();
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    async waitFor(matches) {
      await eventually("the span has arrived", () => spans.some(matches));
      return spans.find(matches) as ReceivedSpan;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

function decode(body: Uint8Array): ReceivedSpan[] {
  const message = ExportTraceServiceRequest.decode(body);
  const object = ExportTraceServiceRequest.toObject(message, { longs: String, enums: String, bytes: Buffer });
  const hex = (bytes: unknown) => Buffer.from((bytes as Uint8Array | undefined) ?? []).toString("hex");
  return fromOtlp(object as OtlpRequest, hex);
}

/** @param idOf how ids are written. */
export function fromOtlp(request: OtlpRequest, idOf: (id: unknown) => string): ReceivedSpan[] {
  return request.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: String(span.kind),
        traceId: idOf(span.traceId),
        spanId: idOf(span.spanId),
        parentSpanId: idOf(span.parentSpanId),
        traceState: span.traceState ?? "",
        attributes: valuesOf(span.attributes),
        status: String(span.status?.code ?? 0),
        durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
        resource: valuesOf(resource.attributes),
      })),
    ),
  );
}

function valuesOf(attributes: readonly KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, "intValue" in value ? Number(value.intValue) : Object.values(value)[0]]),
  );
}
