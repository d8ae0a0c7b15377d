import type { OutgoingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { codeName } from "../errors/code-name.js";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import type { Refusal } from "../refusal.js";
import { respellGrpcMessage } from "./grpc/grpc-message.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { LINGER_MS } from "./limits.js";

/** Flag of the last envelope of a Connect stream. */
const END_STREAM = 0b10;
/** What of a content type may be repeated in an answer: no parameters, and nothing that a header cannot carry. */
const CONTENT_TYPE = /^[\w/+.-]+/;

export function answerText(response: HttpResponse, status: number, headers: OutgoingHttpHeaders, body: string | Buffer): void {
  if (response.headersSent || response.writableEnded) return;
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
  response.end(body);
}

export function answerJson(response: HttpResponse, status: number, body: object, headers: OutgoingHttpHeaders = {}): void {
  answerText(response, status, { ...headers, "content-type": "application/json" }, JSON.stringify(body));
}

/** What plain HTTP and Connect show of an error. */
export function toJson({ code, codeText = codeName(code), message, reason }: Refusal): object {
  return { code: codeText, message, reason };
}

/**
 * Refuses a request in the protocol that it speaks, so that every client sees code and message. Nothing of its body was read,
 * and nothing is: what the client sends before it looks at the answer is dropped.
 */
export function refuse(request: HttpRequest, response: HttpResponse, refusal: Refusal): void {
  const { status, headers } = refusal;
  if (response.headersSent || response.writableEnded) return;
  for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) response.setHeader(name, value);
  // Of HTTP/1.1 the next request would come after all of the body.
  if (request.httpVersionMajor === 1) response.setHeader("connection", "close");
  if (refusal.text !== undefined) {
    response.statusCode = status;
    response.setHeader("content-type", "text/plain; charset=utf-8");
    endAfterBody(request, response, Buffer.from(refusal.text));
    return;
  }
  if (refusal.body !== undefined) {
    response.statusCode = status;
    response.setHeader("content-type", "application/json; charset=utf-8");
    endAfterBody(request, response, Buffer.from(`${JSON.stringify(refusal.body)}\n`));
    return;
  }
  const contentType = CONTENT_TYPE.exec(request.headers["content-type"] ?? "")?.[0].toLowerCase() ?? "";
  if (contentType.startsWith("application/grpc")) {
    response.setHeader("content-type", contentType);
    const status = respellGrpcMessage(setTrailerStatus(new Headers(), toError(refusal)));
    for (const [name, value] of status) response.setHeader(name, value);
    endAfterBody(request, response, Buffer.alloc(0));
  } else if (contentType.startsWith("application/connect+")) {
    response.setHeader("content-type", contentType);
    endAfterBody(request, response, endStream(refusal));
  } else {
    response.statusCode = status;
    response.setHeader("content-type", "application/json");
    const isConnect = request.headers["connect-protocol-version"] !== undefined || contentType === "application/proto";
    endAfterBody(request, response, Buffer.from(JSON.stringify(isConnect ? toConnectJson(refusal) : toJson(refusal))));
  }
}

/**
 * Answers at once and closes the stream or connection when the client has stopped sending, or after a while. To close it while
 * the client still sends would reset it, and the reset overtakes the answer.
 */
function endAfterBody(request: HttpRequest, response: HttpResponse, answer: Buffer): void {
  const { stream } = request as { stream?: ServerHttp2Stream };
  if (stream !== undefined) {
    // Headers that end the stream are what gRPC takes for trailers.
    if (answer.length > 0) response.write(answer);
    response.end();
    if (!stream.endAfterHeaders) dropBody(request, response, () => stream.close());
    return;
  }
  response.setHeader("content-length", answer.length);
  if (!announcesBody(request)) {
    response.end(answer);
    return;
  }
  if (answer.length > 0) response.write(answer);
  else response.flushHeaders();
  dropBody(request, response, () => response.end());
  request.once("end", () => response.end());
}

/** Lets the body flow away, for a while. */
function dropBody(request: HttpRequest, response: HttpResponse, giveUp: () => void): void {
  const timer = setTimeout(giveUp, LINGER_MS);
  request.resume();
  response.once("close", () => clearTimeout(timer));
}

/** Whether a body is on its way. Of a client that asks before it sends none will come. */
export function announcesBody({ headers }: HttpRequest): boolean {
  return (
    headers.expect === undefined && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0)
  );
}

/** With the reason where the clients of the RPCs look for it. */
function toError({ code, message, reason, metadata = {} }: Refusal): ConnectError {
  const details = reason === undefined ? [] : [{ desc: ErrorInfoSchema, value: { reason, domain: "picod", metadata } }];
  return new ConnectError(message, code, undefined, details);
}

function toConnectJson(refusal: Refusal) {
  return errorToJson(toError(refusal), undefined);
}

/** One envelope: flags, length, and the error as JSON. */
function endStream(refusal: Refusal): Buffer {
  const json = Buffer.from(JSON.stringify({ error: toConnectJson(refusal) }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(END_STREAM, 0);
  prefix.writeUInt32BE(json.length, 1);
  return Buffer.concat([prefix, json]);
}
