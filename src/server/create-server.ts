import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { registerServices } from "../api/routes.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import type { Config } from "../config.js";
import { createInterceptors } from "../interceptors/index.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Sandbox } from "../sandbox.js";
import { createRequestHandler, type RequestHandler } from "./handle-request.js";
import { tendSession } from "./http2-session.js";
import { HTTP1_OPTIONS, HTTP2_OPTIONS, PREFACE_TIMEOUT_MS } from "./limits.js";
import { createPlainRoutes } from "./plain-routes.js";
import { routeByPreface } from "./preface.js";

/** Larger than any message: responses are not compressed, since callers are next door and processors are few. */
const NEVER_COMPRESS_BYTES = 2 ** 31;

export interface Server {
  /** Port in use, also when 0 was asked for. @throws EADDRINUSE, EACCES, … */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new connections and, on those it has, no new calls. */
  stopAccepting(): void;
  /** Resolves when no call is in progress. */
  idle(): Promise<void>;
  /** Answers the calls that are still in progress with UNAVAILABLE. */
  abortCalls(): void;
  /** Closes every connection. */
  destroy(): void;
}

export interface ServerParts {
  readonly config: Config;
  readonly sandbox: Sandbox;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly verifier: TokenVerifier | undefined;
}

/** One port for HTTP/1.1 and, by prior knowledge, HTTP/2; on both gRPC, gRPC-Web, Connect and plain HTTP. */
export function createServer(parts: ServerParts): Server {
  const shutdown = new AbortController();
  const { handle, idle } = countCalls(createHandler(parts, shutdown.signal));
  const sessions = new Set<ServerHttp2Session>();
  // The HTTP/1.1 server is the one that listens: its time-outs do not work otherwise.
  const http1 = createHttp1Server(HTTP1_OPTIONS, handle);
  const handleHttp2 = handle as unknown as (request: Http2ServerRequest, response: Http2ServerResponse) => Promise<void>;
  const http2 = createHttp2Server(HTTP2_OPTIONS, handleHttp2);
  // Whoever asks "may I send the body?" is answered by the gate first.
  http1.on("checkContinue", handle);
  http2.on("checkContinue", handleHttp2);
  http2.on("sessionError", () => undefined);
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    tendSession(session);
  });
  const onHttp1 = http1.listeners("connection")[0] as (socket: Socket) => void;
  http1.removeAllListeners("connection").on("connection", (socket: Socket) => {
    routeByPreface(
      socket,
      PREFACE_TIMEOUT_MS,
      (opened) => onHttp1.call(http1, opened),
      (opened) => {
        // Sockets of the HTTP/1.1 server stay half open, and an HTTP/2 session on one never sees its client leave.
        opened.allowHalfOpen = false;
        http2.emit("connection", opened);
      },
    );
  });
  return {
    async listen(host, port) {
      http1.listen(port, host);
      await once(http1, "listening");
      return (http1.address() as AddressInfo).port;
    },
    stopAccepting() {
      http1.close();
      http1.closeIdleConnections();
      for (const session of sessions) session.close();
    },
    idle,
    abortCalls: () => shutdown.abort(new ConnectError("the daemon is shutting down", Code.Unavailable)),
    destroy() {
      http1.closeAllConnections();
      for (const session of sessions) session.destroy();
    },
  };
}

function createHandler(parts: ServerParts, shutdownSignal: AbortSignal): RequestHandler {
  const { config, sandbox, readiness, metrics, logger, verifier } = parts;
  const router = createConnectRouter({
    interceptors: createInterceptors(metrics),
    readMaxBytes: config.maxMessageBytes,
    acceptCompression: [compressionGzip],
    compressMinBytes: NEVER_COMPRESS_BYTES,
    shutdownSignal,
  });
  registerServices(router, sandbox, readiness);
  const rpcs = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  const plainRoutes = createPlainRoutes(readiness, metrics);
  return createRequestHandler({ rpcs, plainRoutes, verifier, metricsPublic: config.metricsPublic, metrics, logger });
}

/** Knows when all calls have ended. */
function countCalls(handler: RequestHandler): { handle: RequestHandler; idle: () => Promise<void> } {
  let calls = 0;
  let waiting: (() => void)[] = [];
  return {
    async handle(request, response) {
      calls++;
      await handler(request, response);
      calls--;
      if (calls > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    idle: () => (calls === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
