import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import type { WebSocket } from "ws";
import type { HttpExchange, RouteMatch } from "../api/http/route.js";
import type { Call } from "../call.js";
import { codeName } from "../errors/code-name.js";
import { toConnectError } from "../errors/to-connect-error.js";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import type { Readiness } from "../readiness.js";
import { announcesBody, answerJson, type Refusal, refuse, toJson } from "./answer.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { MESSAGE_IDLE_TIMEOUT_MS } from "./limits.js";
import { RequestBody } from "./request-body.js";

export type AcceptWebSocket = (protocols: readonly string[]) => Promise<WebSocket>;

/** A request of plain HTTP that has passed the gate, and what ends it early. */
export interface PlainCall {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly call: Call;
  readonly readiness: Readiness;
  readonly shutdownSignal: AbortSignal;
  readonly acceptWebSocket: AcceptWebSocket;
}

/** Runs one route. Resolves when its answer has been handed to the kernel, or the caller has gone. */
export async function handlePlainHttp({ route, parameters }: RouteMatch, plainCall: PlainCall): Promise<void> {
  const { request, response, call, readiness, shutdownSignal } = plainCall;
  const abort = new AbortController();
  const left = new AbortController();
  let abandoned = false;
  const gone = () => {
    // What has been answered closes too.
    abandoned ||= !response.writableEnded;
    left.abort();
    abort.abort(new ConnectError("the caller has gone", Code.Canceled));
  };
  const onShutdown = () => abort.abort(shutdownSignal.reason);
  using following = route.follows ? readiness.whileReady(abort.signal) : undefined;
  const { signal } = following ?? abort;
  const { streamsBody } = route;
  const body = new RequestBody(request, call, {
    maxIdleMs: streamsBody ? undefined : MESSAGE_IDLE_TIMEOUT_MS,
    confirmEnd: streamsBody ?? false,
  });
  // A route that waits for more of the body is woken.
  signal.addEventListener("abort", () => body.discard(), { once: true });
  response.once("close", gone);
  request.once("error", gone);
  shutdownSignal.addEventListener("abort", onShutdown);
  if (shutdownSignal.aborted) onShutdown();
  // A pipelined request waits for its turn with a response that has no socket, and is not told when that closes.
  const socket = request.httpVersionMajor === 1 && response.socket === null ? request.socket : undefined;
  socket?.once("close", gone);
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  try {
    await route.handle(createExchange(plainCall, parameters, body, signal));
    if (!response.writableEnded && response.headersSent) response.end();
    await answered(response, left.signal);
    call.code = abandoned || (response.headersSent && !response.writableFinished) ? codeName(Code.Canceled) : "ok";
  } catch (error) {
    const failure = toConnectError(signal.aborted ? signal.reason : error, call.requestId);
    call.code = codeName(failure.code);
    call.cause = failure.cause;
    body.discard();
    if (!left.signal.aborted) answerError(failure, request, response);
    await answered(response, left.signal);
  } finally {
    response.off("close", gone);
    request.off("error", gone);
    socket?.off("close", gone);
    shutdownSignal.removeEventListener("abort", onShutdown);
    body.discard();
  }
}

function createExchange(
  { request, response, call, acceptWebSocket }: PlainCall,
  parameters: Readonly<Record<string, string>>,
  body: AsyncIterable<Uint8Array>,
  abortSignal: AbortSignal,
): HttpExchange {
  const isHead = request.method === "HEAD";
  const send: HttpExchange["send"] = (status, headers, content) => {
    const bytes = Buffer.byteLength(content);
    // A 204 has neither body nor length.
    response.writeHead(status, status === 204 ? headers : { ...headers, "content-length": bytes });
    if (!isHead) call.bytesOut += bytes;
    response.end(content);
  };
  return {
    request,
    response,
    parameters,
    query: queryOf(request),
    body,
    call,
    abortSignal,
    send,
    sendJson: (status, content, headers = {}) =>
      send(status, { ...headers, "content-type": "application/json" }, JSON.stringify(content)),
    begin(headers) {
      response.writeHead(200, headers);
      if (isHead) response.end();
      else response.flushHeaders();
      return !isHead;
    },
    write(chunk) {
      call.bytesOut += Buffer.byteLength(chunk);
      return response.write(chunk) ? undefined : drained(response, abortSignal);
    },
    acceptWebSocket,
  };
}

export function queryOf(request: HttpRequest): URLSearchParams {
  const target = request.url ?? "";
  const at = target.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : target.slice(at + 1));
}

function drained(response: HttpResponse, abortSignal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      abortSignal.removeEventListener("abort", done);
      resolve();
    };
    response.on("drain", done);
    abortSignal.addEventListener("abort", done);
    if (abortSignal.aborted) done();
  });
}

/** After the head only a broken connection tells that the answer is not whole. */
function answerError(failure: ConnectError, request: HttpRequest, response: HttpResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const refusal = toRefusal(failure);
  if (announcesBody(request) && !request.complete) refuse(request, response, refusal);
  else answerJson(response, refusal.status, toJson(refusal));
}

function toRefusal(failure: ConnectError): Refusal {
  const [info] = failure.findDetails(ErrorInfoSchema);
  const reason = info === undefined ? {} : { reason: info.reason };
  return { code: failure.code, message: failure.rawMessage, status: codeToHttpStatus(failure.code), ...reason };
}

/** Resolves when the last of an answer was handed to the kernel, or its caller has gone; at once when it became a WebSocket. */
function answered(response: HttpResponse, goneSignal: AbortSignal): Promise<void> | undefined {
  if (!response.headersSent || response.writableFinished || goneSignal.aborted) return undefined;
  return new Promise((resolve) => {
    response.once("finish", resolve);
    goneSignal.addEventListener("abort", () => resolve(), { once: true });
  });
}
