import type { ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { type HttpRoutes, isMatch } from "../api/http-route.js";
import type { Call } from "../call.js";
import { codeName } from "../errors/code-name.js";
import type { Refusal } from "../refusal.js";
import { writeAccessLine } from "./access-log.js";
import { refuse } from "./answer.js";
import { callKind } from "./calls-in-progress.js";
import { answerCrossOrigin, refuseOrigin } from "./cross-origin.js";
import { endCall } from "./end-call.js";
import { judge, type RequestHandling, realmOf } from "./gate.js";
import { beginCall, pathOf } from "./guard.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { INSTANCE_HEADER } from "./instance.js";
import { MAX_PUBLIC_CALLS } from "./limits.js";
import { type AcceptWebSocket, handlePlainHttp } from "./plain-http.js";
import { beginRequestSpan } from "./request-span.js";
import { handleRpc } from "./rpc.js";
import { refuseRpc } from "./rpc-form.js";
import { type Upgrade, upgradeToWebSocket } from "./upgrade.js";

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
      response.setHeader(INSTANCE_HEADER, handling.instanceId);
      const realm = realmOf(handling, request);
      if (realm?.crossOrigin && answerCrossOrigin(request, response, realm.crossOrigin)) {
        call.code = "ok";
        writeAccessLine(handling.logger, call);
        return;
      }
      const strange = realm?.crossOrigin && refuseOrigin(request, realm.crossOrigin);
      const judgement = strange ?? judge(handling, request, call, realm, upgrade);
      // Nothing is awaited without need: a caller that leaves meanwhile has to be noticed.
      const verdict = judgement instanceof Promise ? await judgement : judgement;
      const isGone = judgement instanceof Promise && hasLeft(request, response);
      if (isGone) call.code = codeName(Code.Canceled);
      const refusal = verdict ?? (isGone ? undefined : await route(handling, request, response, call, upgrade));
      if (refusal !== undefined) {
        call.code = codeName(refusal.code);
        handling.metrics.requestRefused(refusal.status);
        refuse(request, response, inWordsOfPath(handling.plainRoutes, request, refusal));
      }
    } catch (error) {
      call.code = codeName(Code.Internal);
      call.cause = error;
      answerFault(request, response, call);
    }
    endCall(handling, call, response.statusCode);
  };
}

/** What the gate and the router refuse looks like what the route itself refuses. */
function inWordsOfPath(routes: HttpRoutes, request: HttpRequest, refusal: Refusal): Refusal {
  const { showError, errorBody } = routes.showErrorOf(pathOf(request) ?? "");
  if (errorBody !== undefined) return { body: errorBody(refusal.status, refusal.message), ...refusal };
  if (showError === undefined) return refusal;
  return { ...refusal, codeText: showError(new ConnectError(refusal.message, refusal.code)).codeText };
}

/** Whether the caller has left before anybody listened for it. */
function hasLeft(request: HttpRequest, response: HttpResponse): boolean {
  const { stream } = request as { stream?: ServerHttp2Stream };
  return stream === undefined ? response.destroyed : stream.destroyed;
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
  const isPublic = call.caller?.how === "public";
  const rpc = handling.rpcs.get(path);
  if (rpc !== undefined) {
    beginRequestSpan(handling.tracer, call, request);
    const refusal = refuseRpc(rpc, request);
    if (refusal !== undefined) return refusal;
    if (isPublic && calls.publicCount >= MAX_PUBLIC_CALLS) {
      return { code: Code.ResourceExhausted, message: `more than ${MAX_PUBLIC_CALLS} calls without a token`, status: 429 };
    }
    if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
    await calls.count(callKind(call.caller, path), call, () => handleRpc(rpc, request, response, call));
    return undefined;
  }
  const plain = handling.plainRoutes.find(request.method ?? "", path);
  if (plain === undefined) return noSuchPath(request, path);
  if (!isMatch(plain)) {
    const message = `${path.slice(0, 200)} takes ${plain.join(" and ")}`;
    return { code: Code.Unimplemented, message, status: 405, headers: { allow: plain.join(", ") } };
  }
  beginRequestSpan(handling.tracer, call, request);
  if (plain.route.isWebSocket) {
    const refusal = refuseWebSocket(request, upgrade);
    if (refusal !== undefined) return refusal;
  }
  const acceptWebSocket: AcceptWebSocket = (protocols) => upgradeToWebSocket(request, response, upgrade, protocols);
  const isTraced = handling.tracer !== undefined;
  const plainCall = { request, response, call, readiness, shutdownSignal, acceptWebSocket, isTraced };
  await calls.count(isPublic ? "public" : "working", call, () => handlePlainHttp(plain, plainCall));
  if (!isPublic) handling.metrics.callEnded(call.procedure, call.code ?? "unknown", performance.now() - call.startedAt);
  return undefined;
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
