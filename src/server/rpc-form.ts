import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { Refusal } from "../refusal.js";
import type { HttpRequest } from "./http-types.js";

/** The RPC library remembers what it has seen of them, so long ones must not get there. */
const MAX_CONTENT_TYPE_LENGTH = 100;
const UNARY_TYPES = "application/json, application/proto, application/grpc or application/grpc-web";
const STREAM_TYPES = "application/connect+json, application/connect+proto, application/grpc or application/grpc-web";

/** What is wrong with the form of a request for an RPC. The RPC library would answer with a bare status that explains nothing. */
export function refuseRpc(rpc: UniversalHandler, request: HttpRequest): Refusal | undefined {
  const { requestPath, method } = rpc;
  if (request.method !== "POST") {
    const message = `${requestPath} takes POST`;
    return unlessGrpc(request, { code: Code.Unimplemented, message, status: 405, headers: { allow: "POST" } });
  }
  if (method.methodKind === "bidi_streaming" && request.httpVersionMajor === 1) {
    return { code: Code.Unimplemented, message: `${requestPath} streams both ways and needs HTTP/2`, status: 505 };
  }
  const contentType = request.headers["content-type"] ?? "";
  if (contentType.length <= MAX_CONTENT_TYPE_LENGTH && rpc.supportedContentType(contentType)) return undefined;
  const types = method.methodKind === "unary" ? UNARY_TYPES : STREAM_TYPES;
  const message = `unsupported content type: ${JSON.stringify(contentType.slice(0, MAX_CONTENT_TYPE_LENGTH))}: ${requestPath} takes ${types}`;
  return unlessGrpc(request, { code: Code.InvalidArgument, message, status: 415 });
}

/**
 * In plain text for whoever does not speak gRPC. JSON would be an error of the RPC to clients of Connect, and their protocol has it
 * that nothing but the status tells what came before one.
 */
function unlessGrpc({ headers }: HttpRequest, refusal: Refusal): Refusal {
  return headers["content-type"]?.startsWith("application/grpc") ? refusal : { ...refusal, text: `${refusal.message}\n` };
}
