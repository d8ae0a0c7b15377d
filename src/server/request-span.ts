import type { IncomingHttpHeaders } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Call } from "../call.js";
import type { Tracer } from "../telemetry/tracer.js";
import type { SpanAttributes } from "../trace.js";
import { pathOf } from "./guard.js";
import type { HttpRequest } from "./http-types.js";

/** Of a server: what else goes wrong is the caller's. */
const RPC_FAULTS = ["unknown", "deadline_exceeded", "unimplemented", "internal", "unavailable", "data_loss"];

/**
 * Makes a call that the gate has let in a span of its caller's trace. Calls that need no token are none: whoever reaches the port could
 * make them, and probes do, all the time. Names are those of OpenTelemetry's semantic conventions.
 */
export function beginRequestSpan(tracer: Tracer | undefined, call: Call, request: HttpRequest): void {
  if (tracer === undefined || call.caller === undefined || call.caller.how === "public") return;
  const { procedure, startedAt, trace, requestId, peer, caller } = call;
  const common = {
    ...serverAddress(request.headers),
    "client.address": peer,
    "network.protocol.version": request.httpVersionMajor === 2 ? "2" : "1.1",
    "picod.request.id": requestId,
    "picod.caller": caller.name,
  };
  const own = isRpc(call) ? rpcAttributes(procedure, request) : httpAttributes(procedure, request);
  const name = isRpc(call) ? procedure.slice(1) : procedure;
  call.trace = tracer.begin({ name, attributes: { ...common, ...own }, startedAt, parent: trace.context });
}

/** @param status of the answer, for plain HTTP. */
export function endRequestSpan(call: Call, status: number): void {
  const { trace, code = "unknown" } = call;
  trace.set({ "picod.process.id": call.processId, ...(isRpc(call) ? {} : { "http.response.status_code": status }) });
  // As gRPC's standard spells them.
  if (isRpc(call)) trace.set({ "rpc.status_code": code === "canceled" ? "CANCELLED" : code.toUpperCase() });
  if (isRpc(call) ? RPC_FAULTS.includes(code) : status >= 500) trace.fail(isRpc(call) ? code : String(status));
  trace[Symbol.dispose]();
}

function rpcAttributes(procedure: string, { headers }: HttpRequest): SpanAttributes {
  const system = headers["content-type"]?.startsWith("application/grpc") ? "grpc" : "connectrpc";
  return { "rpc.system.name": system, "rpc.method": procedure.slice(1) };
}

/** Without the query: it may hold a signature. */
function httpAttributes(procedure: string, request: HttpRequest): SpanAttributes {
  return {
    "http.request.method": request.method,
    "http.route": procedure.slice(procedure.indexOf(" ") + 1),
    "url.path": pathOf(request),
    "url.scheme": (request.socket as TLSSocket).encrypted ? "https" : "http",
    "user_agent.original": request.headers["user-agent"],
  };
}

function serverAddress(headers: IncomingHttpHeaders): SpanAttributes {
  const authority = (headers[":authority"] ?? headers.host)?.toString() ?? "";
  const [, host, port] = /^(.*?)(?::(\d+))?$/.exec(authority) ?? [];
  return { "server.address": host || undefined, "server.port": port === undefined ? undefined : Number(port) };
}

/** `/package.Service/Method`; plain HTTP has its method in front. */
const isRpc = ({ procedure }: Call) => procedure.startsWith("/");
