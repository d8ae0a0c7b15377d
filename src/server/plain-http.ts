import { constants, type ServerHttp2Stream } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import type { WebSocket } from "ws";
import type { HttpExchange, HttpRoute, RouteMatch } from "../api/http-route.js";
import type { Call, CallSubject } from "../call.js";
import { codeName } from "../errors/code-name.js";
import { toConnectError } from "../errors/to-connect-error.js";
import { gather } from "../gather.js";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { noteDenial } from "../policy/denial.js";
import type { Readiness } from "../readiness.js";
import type { Refusal } from "../refusal.js";
import { TransferSpan } from "../transfer-span.js";
import { announcesBody, answerJson, refuse, toJson } from "./answer.js";
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
  /** Whether what it moves is a step of a trace. */
  readonly isTraced: boolean;
}

/** Runs one route. Resolves when its answer has been handed to the kernel, or the caller has gone. */
export async function handlePlainHttp({ route, parameters }: RouteMatch, plainCall: PlainCall): Promise<void> {
  const { request, response, call, readiness, shutdownSignal, isTraced } = plainCall;
  const abort = new AbortController();
  const left = new AbortController();
  const isHttp1 = request.httpVersionMajor === 1;
  let abandoned = false;
  const gone = () => {
    // What has been answered closes too, and the reason would cost more than the answer. A reset stream of HTTP/2 looks finished.
    if (isHttp1 && response.writableFinished) return;
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
    onBegin: continuing(request, response),
  });
  const isSending = route.method === "GET";
  const transfer = isTraced && route.transfers ? new TransferSpan(call, isSending ? "sent" : "received") : undefined;
  const traced = (content: AsyncIterable<Uint8Array>) =>
    transfer === undefined || isSending ? content : transfer.through(content);
  const content: Content = {
    body: traced(body),
    bodyInBulk() {
      const bulk = body.inBulk();
      // Its end is not for Node's parser to see.
      if (bulk !== undefined) response.setHeader("connection", "close");
      return traced(bulk ?? gather(body));
    },
  };
  // A route that waits for more of the body is woken.
  signal.addEventListener("abort", () => body.discard(), { once: true });
  response.once("close", gone);
  request.once("error", gone);
  shutdownSignal.addEventListener("abort", onShutdown);
  if (shutdownSignal.aborted) onShutdown();
  // A pipelined request waits for its turn with a response that has no socket, and is not told when that closes.
  const socket = isHttp1 && response.socket === null ? request.socket : undefined;
  socket?.once("close", gone);
  call.subject = subjectOf(request, parameters);
  try {
    await route.handle(createExchange(plainCall, parameters, content, signal, () => isSending && transfer?.begin()));
    if (!response.writableEnded && response.headersSent) response.end();
    await answered(response, left.signal);
    transfer?.end(abandoned ? "canceled" : undefined);
    call.code = abandoned || (response.headersSent && !response.writableFinished) ? codeName(Code.Canceled) : "ok";
  } catch (error) {
    const failure = toConnectError(signal.aborted ? signal.reason : error, call.requestId);
    call.code = codeName(failure.code);
    noteDenial(call, failure);
    call.cause = failure.cause;
    transfer?.end(call.code);
    body.discard();
    if (!left.signal.aborted) answerError(failure, route, request, response);
    await answered(response, left.signal);
  } finally {
    response.off("close", gone);
    request.off("error", gone);
    socket?.off("close", gone);
    shutdownSignal.removeEventListener("abort", onShutdown);
    body.discard();
  }
}

type Content = Pick<HttpExchange, "body" | "bodyInBulk">;

/** The file that a URL names, and for whom. What a body names is noted by whoever reads it. */
function subjectOf(request: HttpRequest, parameters: Readonly<Record<string, string>>): CallSubject | undefined {
  const query = queryOf(request);
  const path = parameters.path ?? query.get("path") ?? undefined;
  if (path === undefined) return undefined;
  return { paths: [path], command: undefined, user: query.get("user") ?? query.get("username") ?? undefined };
}

/**
 * Whoever asks "may I send the body?" hears yes when a route wants it. Until then the connection is to end with the answer: nobody knows
 * whether a body will come.
 */
function continuing(request: HttpRequest, response: HttpResponse): (() => void) | undefined {
  if (request.headers.expect?.toLowerCase() !== "100-continue") return undefined;
  const isHttp1 = request.httpVersionMajor === 1;
  if (isHttp1) response.setHeader("connection", "close");
  return () => {
    if (response.headersSent) return;
    // From now on its body is on its way like any other.
    delete request.headers.expect;
    if (isHttp1) response.removeHeader("connection");
    response.writeContinue();
  };
}

function createExchange(
  { request, response, call, acceptWebSocket }: PlainCall,
  parameters: Readonly<Record<string, string>>,
  content: Content,
  abortSignal: AbortSignal,
  onAnswer: () => void,
): HttpExchange {
  const isHead = request.method === "HEAD";
  const send: HttpExchange["send"] = (status, headers, content) => {
    onAnswer();
    const bytes = Buffer.byteLength(content);
    // A 204 has neither body nor length, and the length of a 304 would be that of another answer.
    response.writeHead(status, status === 204 || status === 304 ? headers : { ...headers, "content-length": bytes });
    if (!isHead) call.bytesOut += bytes;
    response.end(content);
  };
  return {
    request,
    response,
    parameters,
    query: queryOf(request),
    ...content,
    call,
    abortSignal,
    send,
    sendJson: (status, content, headers = {}) =>
      send(status, { ...headers, "content-type": "application/json" }, JSON.stringify(content)),
    begin(headers, status = 200) {
      onAnswer();
      response.writeHead(status, headers);
      if (isHead) response.end();
      else response.flushHeaders();
      return !isHead;
    },
    write(chunk) {
      call.bytesOut += Buffer.byteLength(chunk);
      return response.write(chunk) ? undefined : drained(response, abortSignal);
    },
    writeThrough(chunk) {
      call.bytesOut += chunk.length;
      return handedOver(response, chunk, abortSignal);
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

/** Resolves when a chunk is no longer needed. */
function handedOver(response: HttpResponse, chunk: Uint8Array, abortSignal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      abortSignal.removeEventListener("abort", done);
      resolve();
    };
    abortSignal.addEventListener("abort", done);
    response.write(chunk, done);
    if (abortSignal.aborted) done();
  });
}

/** After the head only a broken connection tells that the answer is not whole. */
function answerError(failure: ConnectError, route: HttpRoute, request: HttpRequest, response: HttpResponse): void {
  if (response.headersSent) {
    breakOff(request, response);
    return;
  }
  const refusal = toRefusal(failure, route);
  const body = refusal.body ?? toJson(refusal);
  if (mayStillSend(request) && !request.complete) refuse(request, response, refusal);
  else answerJson(response, refusal.status, body);
}

/** Whether the client is at its body, or will be: whoever asked before it sends it may lose patience. */
function mayStillSend(request: HttpRequest): boolean {
  const { stream } = request as { stream?: ServerHttp2Stream };
  return stream === undefined ? announcesBody(request) || request.headers.expect !== undefined : !stream.endAfterHeaders;
}

/** Destroyed without a code, a stream of HTTP/2 is closed as if nothing were wrong. */
function breakOff(request: HttpRequest, response: HttpResponse): void {
  const { stream } = request as { stream?: ServerHttp2Stream };
  if (stream === undefined) response.destroy();
  else stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

function toRefusal(failure: ConnectError, route: HttpRoute): Refusal {
  const [info] = failure.findDetails(ErrorInfoSchema);
  const reason = info === undefined ? {} : { reason: info.reason };
  const status = codeToHttpStatus(failure.code);
  const refusal = { code: failure.code, message: failure.rawMessage, status, ...reason, ...route.showError?.(failure) };
  return route.errorBody === undefined ? refusal : { ...refusal, body: route.errorBody(refusal.status, refusal.message) };
}

/** Resolves when the last of an answer was handed to the kernel, or its caller has gone; at once when it became a WebSocket. */
function answered(response: HttpResponse, goneSignal: AbortSignal): Promise<void> | undefined {
  if (!response.headersSent || response.writableFinished || goneSignal.aborted) return undefined;
  return new Promise((resolve) => {
    response.once("finish", resolve);
    goneSignal.addEventListener("abort", () => resolve(), { once: true });
  });
}
