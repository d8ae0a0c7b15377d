import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Requests and responses of both protocol versions. Those of HTTP/2 are another class with the same interface (Node's
 * "compatibility API"), so the types of HTTP/1.1 stand for both.
 */
export type HttpRequest = IncomingMessage;
export type HttpResponse = ServerResponse;
