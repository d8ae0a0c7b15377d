import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { WebSocket } from "ws";
import { PicodError } from "../errors/picod-error.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";
import { INSTANCE_HEADER } from "./instance.js";
import { LINGER_MS, MAX_WEBSOCKET_MESSAGE_BYTES } from "./limits.js";

/** A connection whose client has asked to speak something else on it. */
export interface Upgrade {
  readonly socket: Duplex;
  /** What came behind the request. */
  readonly head: Buffer;
}

/** An answer to a request to upgrade: Node makes none itself. The connection ends behind it unless it becomes a WebSocket. */
export function responseTo(request: IncomingMessage, socket: Duplex): ServerResponse {
  socket.on("error", () => undefined);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]);
  response.once("finish", () => (socket as Parameters<ServerResponse["assignSocket"]>[0]).destroySoon());
  return response;
}

/** @throws INVALID_ARGUMENT when the handshake is malformed. */
export async function upgradeToWebSocket(
  request: HttpRequest,
  response: HttpResponse,
  upgrade: Upgrade | undefined,
  protocols: readonly string[],
): Promise<WebSocket> {
  if (upgrade === undefined) throw new PicodError("INVALID_ARGUMENT", "expected an upgrade to a WebSocket");
  // Loaded when the first is opened: most daemons never see one.
  const { WebSocketServer } = await import("ws");
  const { socket, head } = upgrade;
  if (socket.destroyed) throw new ConnectError("the caller has gone", Code.Canceled);
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_WEBSOCKET_MESSAGE_BYTES,
    perMessageDeflate: false,
    closeTimeout: LINGER_MS,
    handleProtocols: (offered) => protocols.find((protocol) => offered.has(protocol)) ?? false,
  } as ConstructorParameters<typeof WebSocketServer>[0]);
  server.on("headers", (headers) => {
    for (const name of ["x-request-id", INSTANCE_HEADER]) headers.push(`${name}: ${response.getHeader(name)}`);
  });
  return new Promise((resolve, reject) => {
    server.once("wsClientError", (error) => reject(new PicodError("INVALID_ARGUMENT", `invalid handshake: ${error.message}`)));
    server.handleUpgrade(request, socket, head, (opened) => {
      response.detachSocket(request.socket);
      resolve(opened);
    });
  });
}
