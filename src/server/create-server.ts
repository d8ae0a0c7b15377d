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
import { CallsInProgress } from "./calls-in-progress.js";
import { createRequestHandler, type RequestHandler } from "./handle-request.js";
import { tendSession } from "./http2-session.js";
import { HTTP1_OPTIONS, HTTP2_OPTIONS, MAX_CONNECTIONS, PREFACE_TIMEOUT_MS } from "./limits.js";
import { createPlainRoutes } from "./plain-routes.js";
import { routeByPreface } from "./preface.js";

/** Larger than any message: responses are not compressed, since callers are next door and processors are few. */
const NEVER_COMPRESS_BYTES = 2 ** 31;

export interface Server {
  /** Port in use, also when 0 was asked for. @throws EADDRINUSE, EACCES, … */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new connections. */
  stopAccepting(): void;
  /** Resolves when no call is in progress; after `abortCalls`, also none that needed no token. */
  idle(): Promise<void>;
  /** Answers the calls that are still in progress with UNAVAILABLE. */
  abortCalls(): void;
  /**
   * After `stopAccepting`: resolves when the HTTP/2 connections have closed. A call on one is over before the last of its answer has
   * left for the kernel.
   */
  closed(): Promise<void>;
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
  const calls = new CallsInProgress();
  const handle = createHandler(parts, calls, shutdown.signal);
  const sessions = new Set<ServerHttp2Session>();
  let stopping = false;
  // The HTTP/1.1 server is the one that listens: its time-outs do not work otherwise.
  const http1 = createHttp1Server(HTTP1_OPTIONS, handle);
  http1.maxConnections = MAX_CONNECTIONS;
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
    // It was on its way when the listener closed, or has not said yet what it speaks.
    if (stopping) return socket.destroy();
    routeByPreface(
      socket,
      PREFACE_TIMEOUT_MS,
      (opened) => onHttp1.call(http1, opened),
      (opened) => {
        // Sockets of the HTTP/1.1 server stay half open, and an HTTP/2 session on one never sees its client leave.
        opened.allowHalfOpen = false;
        if (stopping) return opened.destroy();
        http2.emit("connection", opened);
      },
    );
  });
  return {
    async listen(host, port) {
      http1.listen(port, host);
      await once(http1, "listening");
      // Accepting fails while no descriptors or memory are left; the next one may succeed.
      http1.on("error", (error) => parts.logger.warn({ err: error }, "cannot accept a connection"));
      return (http1.address() as AddressInfo).port;
    },
    stopAccepting() {
      stopping = true;
      http1.close();
      http1.closeIdleConnections();
      for (const session of sessions) session.close();
    },
    idle: () => calls.idle(shutdown.signal.aborted),
    abortCalls: () => shutdown.abort(new ConnectError("the daemon is shutting down", Code.Unavailable)),
    async closed() {
      await Promise.all([...sessions].map((session) => new Promise((resolve) => session.once("close", resolve))));
    },
    destroy() {
      http1.closeAllConnections();
      for (const session of sessions) session.destroy();
    },
  };
}

function createHandler(parts: ServerParts, calls: CallsInProgress, shutdownSignal: AbortSignal): RequestHandler {
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
  const { metricsPublic } = config;
  return createRequestHandler({ rpcs, plainRoutes, verifier, readiness, calls, metricsPublic, metrics, logger });
}
