import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { HttpRoutes, RouteMatch } from "../api/http/route.js";
import { FOLLOWING_RPCS } from "../api/routes.js";
import { isPublicPath, type PublicOptions } from "../auth/public-paths.js";
import type { Tickets } from "../auth/tickets.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import type { Call } from "../call.js";
import { codeName } from "../errors/code-name.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import { writeAccessLine } from "./access-log.js";
import { type Refusal, refuse } from "./answer.js";
import type { CallKind, CallsInProgress } from "./calls-in-progress.js";
import { beginCall, pathOf } from "./guard.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { MAX_PUBLIC_CALLS } from "./limits.js";
import { type AcceptWebSocket, handlePlainHttp, queryOf } from "./plain-http.js";
import { handleRpc } from "./rpc.js";
import { refuseRpc } from "./rpc-form.js";
import { type Upgrade, upgradeToWebSocket } from "./upgrade.js";

export interface RequestHandling {
  readonly rpcs: ReadonlyMap<string, UniversalHandler>;
  readonly plainRoutes: HttpRoutes;
  readonly tickets: Tickets;
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  readonly readiness: Readiness;
  readonly calls: CallsInProgress;
  readonly publicOptions: PublicOptions;
  /** Ends what plain HTTP is still answering. */
  readonly shutdownSignal: AbortSignal;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** `upgrade` when the request asks for a WebSocket, on a route that has one. */
export type RequestHandler = (request: HttpRequest, response: HttpResponse, upgrade?: Upgrade) => Promise<void>;

/** The way of every request: guard → gate → route. Never rejects: no request may end the process. */
export function createRequestHandler(handling: RequestHandling): RequestHandler {
  return async (request, response, upgrade) => {
    // Without listeners the errors of a connection that breaks would end the process.
    request.on("error", ignore);
    response.on("error", ignore);
    const call = beginCall(request);
    try {
      response.setHeader("x-request-id", call.requestId);
      const refusal = judge(handling, request, call, upgrade) ?? (await route(handling, request, response, call, upgrade));
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
function judge(handling: RequestHandling, request: HttpRequest, call: Call, upgrade: Upgrade | undefined): Refusal | undefined {
  const path = pathOf(request);
  if (path === undefined) return { code: Code.InvalidArgument, message: "invalid request target: it is not a path", status: 400 };
  const plain = handling.plainRoutes.find(request.method ?? "", path);
  call.procedure = isMatch(plain) ? `${plain.route.method} ${plain.route.path}` : path;
  if (isPublicPath(path, handling.publicOptions)) call.authorization = "public";
  else if (handling.verifier === undefined) call.authorization = "insecure";
  else if (handling.verifier.verify(request.headers.authorization)) call.authorization = "token";
  else if (upgrade !== undefined && handling.tickets.redeem(queryOf(request).get("ticket") ?? "")) call.authorization = "token";
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
  upgrade: Upgrade | undefined,
): Promise<Refusal | undefined> {
  const { calls, readiness, shutdownSignal } = handling;
  const path = pathOf(request) ?? "";
  const isPublic = call.authorization === "public";
  const rpc = handling.rpcs.get(path);
  if (rpc !== undefined) {
    const refusal = refuseRpc(rpc, request);
    if (refusal !== undefined) return refusal;
    if (isPublic && calls.publicCount >= MAX_PUBLIC_CALLS) {
      return { code: Code.ResourceExhausted, message: `more than ${MAX_PUBLIC_CALLS} calls without a token`, status: 429 };
    }
    if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
    await calls.count(isPublic ? "public" : rpcKind(path), () => handleRpc(rpc, request, response, call));
    return undefined;
  }
  const plain = handling.plainRoutes.find(request.method ?? "", path);
  if (plain === undefined) return noSuchPath(request, path);
  if (!isMatch(plain)) {
    const message = `${path.slice(0, 200)} takes ${plain.join(" and ")}`;
    return { code: Code.Unimplemented, message, status: 405, headers: { allow: plain.join(", ") } };
  }
  if (plain.route.isWebSocket) {
    const refusal = refuseWebSocket(request, upgrade);
    if (refusal !== undefined) return refusal;
  }
  const acceptWebSocket: AcceptWebSocket = (protocols) => upgradeToWebSocket(request, response, upgrade, protocols);
  const plainCall = { request, response, call, readiness, shutdownSignal, acceptWebSocket };
  await calls.count(isPublic ? "public" : "working", () => handlePlainHttp(plain, plainCall));
  if (!isPublic) handling.metrics.callEnded(call.procedure, call.code ?? "unknown", performance.now() - call.startedAt);
  return undefined;
}

function rpcKind(path: string): CallKind {
  return FOLLOWING_RPCS.has(path) ? "following" : "working";
}

function isMatch(found: RouteMatch | readonly string[] | undefined): found is RouteMatch {
  return found !== undefined && "route" in found;
}

/** Browsers let every page open a WebSocket to every host; they say where the page is from. */
function refuseWebSocket(request: HttpRequest, upgrade: Upgrade | undefined): Refusal | undefined {
  if (upgrade === undefined) {
    // HTTP/2 has no such headers.
    const headers = request.httpVersionMajor === 1 ? { upgrade: "websocket" } : {};
    return { code: Code.FailedPrecondition, message: "expected an upgrade to a WebSocket", status: 426, headers };
  }
  const { origin, host = "" } = request.headers;
  if (origin === undefined || isOriginOf(host, origin)) return undefined;
  return { code: Code.PermissionDenied, message: "a page of another origin may not connect", status: 403 };
}

/** Whatever its scheme: a proxy in between may be the one that speaks TLS. */
function isOriginOf(host: string, origin: string): boolean {
  const page = URL.parse(origin);
  return page !== null && page.host !== "" && page.host === URL.parse(`${page.protocol}//${host}`)?.host;
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
