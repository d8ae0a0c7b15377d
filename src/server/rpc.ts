import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { type Call, callKey } from "../call.js";
import { codeName } from "../errors/code-name.js";
import { respellGrpcMessage } from "./grpc/grpc-message.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { LINGER_MS, MESSAGE_IDLE_TIMEOUT_MS } from "./limits.js";
import { RequestBody } from "./request-body.js";

/**
 * Runs one RPC: Node's request becomes what the RPC library takes, and its response is written with back-pressure. The library's
 * own adapter is not used: it builds a URL from the Host header (one bad header ends the process), reports to the console, and
 * waits for ever for a peer that has left (Node 26). Resolves when the answer has been handed to the kernel or the peer has gone.
 */
export async function handleRpc(
  handler: UniversalHandler,
  request: HttpRequest,
  response: HttpResponse,
  call: Call,
): Promise<void> {
  const abort = new AbortController();
  const isHttp1 = request.httpVersionMajor === 1;
  const gone = () => {
    // What has been answered closes too, and the reason would cost more than the answer. A reset stream of HTTP/2 looks finished.
    if (!(isHttp1 && response.writableFinished)) abort.abort(new ConnectError("the caller has gone", Code.Canceled));
  };
  const { methodKind } = handler.method;
  const sendsOneMessage = methodKind === "unary" || methodKind === "server_streaming";
  const body = new RequestBody(request, call, {
    maxIdleMs: sendsOneMessage ? MESSAGE_IDLE_TIMEOUT_MS : undefined,
    confirmEnd: !sendsOneMessage,
  });
  response.once("close", gone);
  request.once("error", gone);
  // A pipelined request waits for its turn with a response that has no socket, and is not told when that closes.
  const socket = isHttp1 && response.socket === null ? request.socket : undefined;
  socket?.once("close", gone);
  try {
    const answer = await handler({
      httpVersion: request.httpVersion,
      method: request.method ?? "",
      url: `http://picod${request.url}`,
      header: toWebHeaders(request),
      body,
      signal: abort.signal,
      contextValues: createContextValues().set(callKey, call),
    });
    // A connection that is closed while its client still sends is reset, and the reset overtakes the answer.
    const mayEnd = () => (endsConnection(request, response) ? body.discardToEnd(LINGER_MS) : undefined);
    await writeAnswer(answer, response, call, abort.signal, mayEnd);
    call.code ??= abort.signal.aborted ? codeName(Code.Canceled) : codeOfAnswer(answer);
  } finally {
    response.off("close", gone);
    request.off("error", gone);
    socket?.off("close", gone);
    body.discard();
  }
}

async function writeAnswer(
  answer: UniversalServerResponse,
  response: HttpResponse,
  call: Call,
  abortSignal: AbortSignal,
  mayEnd: () => Promise<void> | undefined,
): Promise<void> {
  const body = answer.body?.[Symbol.asyncIterator]();
  try {
    // The first message comes before the headers, which the handler may still be adding to.
    for (let next = await body?.next(); next !== undefined && !next.done; next = await body?.next()) {
      if (abortSignal.aborted) return;
      if (!response.headersSent) writeHead(answer, response);
      call.bytesOut += next.value.length;
      if (!response.write(next.value)) await unlessGone(abortSignal, (resolve) => response.once("drain", resolve));
    }
    if (abortSignal.aborted) return;
    if (!response.headersSent) writeHead(answer, response);
    if (answer.trailer !== undefined) response.addTrailers(Object.fromEntries(respellGrpcMessage(answer.trailer)));
    await mayEnd();
    await unlessGone(abortSignal, (resolve) => response.end(resolve));
  } finally {
    await body?.return?.();
  }
}

function writeHead(answer: UniversalServerResponse, response: HttpResponse): void {
  response.writeHead(answer.status, answer.header === undefined ? {} : Object.fromEntries(answer.header));
}

function endsConnection(request: HttpRequest, response: HttpResponse): boolean {
  return request.httpVersionMajor === 1 && !response.shouldKeepAlive;
}

/** Resolves when `wait` does, or when nobody is there any longer to take the answer. */
function unlessGone(abortSignal: AbortSignal, wait: (resolve: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      abortSignal.removeEventListener("abort", done);
      resolve();
    };
    abortSignal.addEventListener("abort", done);
    if (abortSignal.aborted) done();
    else wait(done);
  });
}

/** For calls that the RPC library refused before an interceptor saw them: malformed messages, headers and timeouts. */
function codeOfAnswer(answer: UniversalServerResponse): string {
  const grpcStatus = Number(answer.trailer?.get("grpc-status") ?? answer.header?.get("grpc-status") ?? 0);
  if (grpcStatus !== 0 && Code[grpcStatus] !== undefined) return codeName(grpcStatus);
  if (answer.status >= 500) return codeName(Code.Internal);
  // What is left are answers whose last envelope tells.
  return codeName(Code.InvalidArgument);
}

function toWebHeaders(request: HttpRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // Names that begin with a colon are HTTP/2's own, and nobody behind the gate needs the token; a user's name is none.
    if (value === undefined || name.startsWith(":") || (name === "authorization" && !/^basic /i.test(String(value)))) continue;
    for (const each of Array.isArray(value) ? value : [value]) headers.append(name, each);
  }
  return headers;
}
