import type { Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Call } from "../../call.js";
import { TransientMap } from "../../transient-map.js";
import { callKind } from "../calls-in-progress.js";
import { judge, type RequestHandling, realmOf } from "../gate.js";
import { beginCall } from "../guard.js";
import type { HttpRequest } from "../http-types.js";
import { MAX_PUBLIC_CALLS } from "../limits.js";
import { beginRequestSpan } from "../request-span.js";
import { type CallEnder, runCall } from "./run-call.js";

const CONTENT_TYPES: readonly (string | undefined)[] = ["application/grpc", "application/grpc+proto"];

/** Takes a stream and answers it, or leaves it alone and returns false. */
export type GrpcLane = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean;

/**
 * gRPC over HTTP/2, straight on Node's streams: the way of the other protocols, through Node's compatibility API and the RPC library,
 * costs some 400 µs more a call. Here go the calls that all is well with; every other one goes there: what is refused,
 * compressed, JSON, or of another protocol.
 */
export function createGrpcLane(handling: RequestHandling): GrpcLane {
  const { calls, shutdownSignal } = handling;
  const running = new TransientMap<Call, CallEnder>();
  shutdownSignal.addEventListener("abort", () => {
    for (const end of running.values()) end(shutdownSignal.reason);
  });
  return (stream, headers) => {
    const path = headers[":path"] ?? "";
    const method = handling.grpcMethods.get(path);
    const { session } = stream;
    // Without a session the stream was reset before anybody could look at it.
    if (method === undefined || session === undefined || shutdownSignal.aborted || !isPlain(headers)) return false;
    const request = toRequest(session, headers, path);
    if (realmOf(handling, request) !== undefined) return false;
    const call = beginCall(request);
    if (judge(handling, request, call, undefined, undefined) !== undefined) return false;
    if (call.caller?.how === "public" && calls.publicCount >= MAX_PUBLIC_CALLS) return false;
    beginRequestSpan(handling.tracer, call, request);
    void calls.count(callKind(call.caller, path), call, () => runCall(handling, running, stream, headers, call, method));
    return true;
  };
}

function isPlain(headers: IncomingHttpHeaders): boolean {
  const { ":method": method, "content-type": contentType, "grpc-encoding": encoding = "identity", expect } = headers;
  return method === "POST" && CONTENT_TYPES.includes(contentType) && encoding === "identity" && expect === undefined;
}

/** What the gate looks at. */
function toRequest({ socket }: Http2Session, headers: IncomingHttpHeaders, path: string): HttpRequest {
  const request = { method: "POST", url: path, headers, httpVersionMajor: 2, socket };
  return request as unknown as HttpRequest;
}
