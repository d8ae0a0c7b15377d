import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { isPublicPath } from "../auth/public-paths.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import type { Call } from "../call.js";
import { codeName } from "../errors/code-name.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import { writeAccessLine } from "./access-log.js";
import { type Refusal, refuse } from "./answer.js";
import type { CallsInProgress } from "./calls-in-progress.js";
import { beginCall, pathOf } from "./guard.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { MAX_PUBLIC_CALLS } from "./limits.js";
import type { PlainRoute } from "./plain-routes.js";
import { handleRpc } from "./rpc.js";
import { refuseRpc } from "./rpc-form.js";

export interface RequestHandling {
  readonly rpcs: ReadonlyMap<string, UniversalHandler>;
  readonly plainRoutes: ReadonlyMap<string, PlainRoute>;
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  readonly readiness: Readiness;
  readonly calls: CallsInProgress;
  readonly metricsPublic: boolean;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export type RequestHandler = (request: HttpRequest, response: HttpResponse) => Promise<void>;

/** The way of every request: guard → gate → route. Never rejects: no request may end the process. */
export function createRequestHandler(handling: RequestHandling): RequestHandler {
  return async (request, response) => {
    // Without listeners the errors of a connection that breaks would end the process.
    request.on("error", ignore);
    response.on("error", ignore);
    const call = beginCall(request);
    try {
      response.setHeader("x-request-id", call.requestId);
      const refusal = judge(handling, request, call) ?? (await route(handling, request, response, call));
      if (refusal !== undefined) {
        call.code = codeName(refusal.code);
        handling.metrics.requestRefused(refusal.status);
        refuse(request, response, refusal);
      }
    } catch (error) {
      call.code = codeName(Code.Internal);
      call.cause = error;
      answerFault(request, response, call);
    }
    handling.metrics.transferred(call.bytesIn, call.bytesOut);
    writeAccessLine(handling.logger, call);
  };
}

/** The gate: nothing of the body has been read yet. */
function judge(handling: RequestHandling, request: HttpRequest, call: Call): Refusal | undefined {
  const path = pathOf(request);
  if (path === undefined) return { code: Code.InvalidArgument, message: "invalid request target: it is not a path", status: 400 };
  call.procedure = path;
  if (isPublicPath(path, handling.metricsPublic)) call.authorization = "public";
  else if (handling.verifier === undefined) call.authorization = "insecure";
  else if (handling.verifier.verify(request.headers.authorization)) call.authorization = "token";
  else {
    const message = "missing or wrong access token: expected the header Authorization: Bearer <token>";
    return { code: Code.Unauthenticated, message, status: 401, headers: { "www-authenticate": "Bearer" } };
  }
  // Connections outlive the listener, and new calls would outlive the time that the others are given.
  if (handling.readiness.ready || call.authorization === "public") return undefined;
  return { code: Code.Unavailable, message: "the daemon is shutting down", status: 503 };
}

async function route(
  handling: RequestHandling,
  request: HttpRequest,
  response: HttpResponse,
  call: Call,
): Promise<Refusal | undefined> {
  const { calls } = handling;
  const isPublic = call.authorization === "public";
  const rpc = handling.rpcs.get(call.procedure);
  if (rpc !== undefined) {
    const refusal = refuseRpc(rpc, request);
    if (refusal !== undefined) return refusal;
    if (isPublic && calls.publicCount >= MAX_PUBLIC_CALLS) {
      return { code: Code.ResourceExhausted, message: `more than ${MAX_PUBLIC_CALLS} calls without a token`, status: 429 };
    }
    if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
    await calls.count(isPublic, () => handleRpc(rpc, request, response, call));
    return undefined;
  }
  const plain = handling.plainRoutes.get(call.procedure);
  if (plain === undefined) return noSuchPath(request, call.procedure);
  if (request.method !== "GET" && request.method !== "HEAD") {
    const message = `${call.procedure} takes GET and HEAD`;
    return { code: Code.Unimplemented, message, status: 405, headers: { allow: "GET, HEAD" } };
  }
  await calls.count(isPublic, async () => plain(request, response));
  call.code = "ok";
  return undefined;
}

/** gRPC and Connect clients expect UNIMPLEMENTED of a procedure that is not there; they go on to another version for it. */
function noSuchPath(request: HttpRequest, path: string): Refusal {
  const code = request.method === "POST" ? Code.Unimplemented : Code.NotFound;
  return { code, message: `no such procedure or path: ${path.slice(0, 200)}`, status: 404 };
}

/** For what nobody foresaw. The answer may have begun, or the connection may be what is broken. */
function answerFault(request: HttpRequest, response: HttpResponse, call: Call): void {
  try {
    const message = `internal error (request id ${call.requestId})`;
    if (response.headersSent) response.destroy();
    else refuse(request, response, { code: Code.Internal, message, status: 500 });
  } catch {
    response.destroy();
  }
}

function ignore(): void {}
