import { once } from "node:events";
import { createServer as createHttp1Server, type IncomingMessage } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { HttpRoutes } from "../api/http-route.js";
import type { Logger } from "../logger.js";
import { Acceptors } from "./acceptors.js";
import type { GrpcLane } from "./grpc/lane.js";
import type { RequestHandler } from "./handle-request.js";
import { tendSession } from "./http2-session.js";
import { HTTP1_OPTIONS, HTTP2_OPTIONS, MAX_CONNECTIONS, PREFACE_TIMEOUT_MS } from "./limits.js";
import { byPreface, byTls, routeConnection, type TakeConnection } from "./preface.js";
import { refuseHttp1, refuseHttp2 } from "./refuse-cleartext.js";
import type { Tls } from "./tls.js";
import { responseTo } from "./upgrade.js";

type StreamEvent = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]];

/** One address that is listened on. */
export interface Listener {
  /** Port in use, also when 0 was asked for. @throws EADDRINUSE, EACCES, … */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new connections. */
  stopAccepting(): void;
  /**
   * After `stopAccepting`: resolves when the HTTP/2 connections have closed. A call on one is over before the last of its answer has
   * left for the kernel.
   */
  closed(): Promise<void>;
  /** Closes every connection. */
  destroy(): void;
}

/** Serves HTTP/1.1 and HTTP/2 on one port: by prior knowledge, or with `tls` by what the client chooses, and over TLS alone. */
export function createListener(
  handle: RequestHandler,
  lane: GrpcLane,
  plainRoutes: HttpRoutes,
  tls: Tls | undefined,
  logger: Logger,
): Listener {
  const sessions = new Set<ServerHttp2Session>();
  /** Those that Node's server has handed over and knows no longer. */
  const upgraded = new Set<Duplex>();
  let stopping = false;
  // The HTTP/1.1 server is the one that listens: its time-outs do not work otherwise.
  const isUpgrade = (request: IncomingMessage) => asksForWebSocket(request, plainRoutes);
  // All else that is offered, HTTP/2 above all, is declined by answering in HTTP/1.1.
  const http1 = createHttp1Server({ ...HTTP1_OPTIONS, shouldUpgradeCallback: isUpgrade }, handle);
  const handleHttp2 = handle as unknown as (request: Http2ServerRequest, response: Http2ServerResponse) => Promise<void>;
  const http2 = createHttp2Server(HTTP2_OPTIONS, handleHttp2);
  // What makes requests of streams; the lane is asked first.
  const onStream = http2.listeners("stream")[0] as (...stream: StreamEvent) => void;
  http2.removeAllListeners("stream").on("stream", (...event: StreamEvent) => {
    if (!lane(event[0], event[1])) onStream.call(http2, ...event);
  });
  // Whoever asks "may I send the body?" is answered by the gate first.
  http1.on("checkContinue", handle);
  http1.on("upgrade", (request, socket, head) => {
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    // Node before 24.9 asks nobody whether to upgrade.
    void handle(request, responseTo(request, socket), isUpgrade(request) ? { socket, head } : undefined);
  });
  http2.on("checkContinue", handleHttp2);
  http2.on("sessionError", () => undefined);
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    tendSession(session);
  });
  const takeHttp1 = http1.listeners("connection")[0] as (socket: Socket) => void;
  const onHttp1 = (socket: Socket) => takeHttp1.call(http1, socket);
  const onHttp2 = (socket: Socket) => {
    // Sockets of the HTTP/1.1 server stay half open, and an HTTP/2 session on one never sees its client leave.
    socket.allowHalfOpen = false;
    if (stopping) return socket.destroy();
    http2.emit("connection", socket);
  };
  const route =
    tls === undefined ? byPreface(onHttp1, onHttp2) : byTls(createTlsEntrance(tls, onHttp1, onHttp2, logger), REFUSE_CLEARTEXT);
  const connections = new Set<Socket>();
  let acceptors: Acceptors | undefined;
  const onConnection = (socket: Socket) => {
    acceptors?.accepted();
    // It was on its way when the listener closed, or has not said yet what it speaks.
    if (stopping) return socket.destroy();
    if (connections.size >= MAX_CONNECTIONS) return socket.resetAndDestroy();
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    routeConnection(socket, PREFACE_TIMEOUT_MS, route);
  };
  http1.removeAllListeners("connection").on("connection", onConnection);
  return {
    async listen(host, port) {
      http1.listen(port, host);
      await once(http1, "listening");
      // Accepting fails while no descriptors or memory are left; the next one may succeed.
      const onError = (error: Error) => logger.warn({ err: error }, "cannot accept a connection");
      http1.on("error", onError);
      acceptors = new Acceptors(http1, { ...HTTP1_OPTIONS, allowHalfOpen: true }, onConnection, onError);
      return (http1.address() as AddressInfo).port;
    },
    stopAccepting() {
      stopping = true;
      http1.close();
      acceptors?.close();
      http1.closeIdleConnections();
      for (const session of sessions) session.close();
    },
    async closed() {
      await Promise.all([...sessions].map((session) => new Promise((resolve) => session.once("close", resolve))));
    },
    destroy() {
      http1.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      for (const session of sessions) session.destroy();
    },
  };
}

const REFUSE_CLEARTEXT = byPreface(refuseHttp1, refuseHttp2);

/** Makes a TLS connection of one that begins as such, and hands it on by what the two sides agree on. */
function createTlsEntrance(tls: Tls, onHttp1: TakeConnection, onHttp2: TakeConnection, logger: Logger): TakeConnection {
  const server = tls.createServer(
    (socket) => (socket.alpnProtocol === "h2" ? onHttp2 : onHttp1)(socket),
    (error) => logger.debug({ err: error }, "TLS handshake failed"),
  );
  return (socket) => {
    // TLS says itself that a side has ended, and an end without that is a cut.
    socket.allowHalfOpen = false;
    server.emit("connection", socket);
  };
}

/** HTTP/1.1 alone; what else asks is answered like a request that does not. */
function asksForWebSocket({ method = "", headers, url = "" }: IncomingMessage, routes: HttpRoutes): boolean {
  if (headers.upgrade?.toLowerCase() !== "websocket") return false;
  return routes.findWebSocket(method, url.split("?", 1)[0] ?? "") !== undefined;
}
