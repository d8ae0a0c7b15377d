import type { OutgoingHttpHeaders } from "node:http";
import { Code } from "@connectrpc/connect";
import { codeName } from "../errors/code-name.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";

/** Flag of the last envelope of a Connect stream. */
const END_STREAM = 0b10;

const HTTP_STATUS_OF_CODE: Partial<Record<Code, number>> = {
  [Code.Unauthenticated]: 401,
  [Code.InvalidArgument]: 400,
  [Code.NotFound]: 404,
  [Code.Unavailable]: 503,
  [Code.Internal]: 500,
  [Code.Unimplemented]: 405,
};

export function answerText(response: HttpResponse, status: number, headers: OutgoingHttpHeaders, body: string | Buffer): void {
  const length = { "content-length": Buffer.byteLength(body) };
  if (response.headersSent || response.writableEnded) return;
  response.writeHead(status, { ...headers, ...length });
  response.end(body);
}

export function answerJson(response: HttpResponse, status: number, body: object): void {
  answerText(response, status, { "content-type": "application/json" }, JSON.stringify(body));
}

/**
 * Refuses a request before a byte of its body was read, in the protocol that it speaks, so that every client sees code and
 * message. Returns the HTTP status.
 */
export function refuse(request: HttpRequest, response: HttpResponse, code: Code, message: string): number {
  const contentType = request.headers["content-type"] ?? "";
  const status = HTTP_STATUS_OF_CODE[code] ?? 500;
  if (code === Code.Unauthenticated) response.setHeader("www-authenticate", "Bearer");
  // Otherwise HTTP/1.1 reads and discards the whole body to reach the next request.
  if (request.httpVersionMajor === 1) response.setHeader("connection", "close");
  if (contentType.startsWith("application/grpc")) {
    const headers = { "content-type": contentType, "grpc-status": String(code), "grpc-message": encodeURIComponent(message) };
    answerText(response, 200, headers, "");
  } else if (contentType.startsWith("application/connect+")) {
    answerText(response, 200, { "content-type": contentType }, endStream(code, message));
  } else {
    answerJson(response, status, { code: codeName(code), message });
  }
  return status;
}

/** One envelope: flags, length, and the error as JSON. */
function endStream(code: Code, message: string): Buffer {
  const json = Buffer.from(JSON.stringify({ error: { code: codeName(code), message } }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(END_STREAM, 0);
  prefix.writeUInt32BE(json.length, 1);
  return Buffer.concat([prefix, json]);
}
