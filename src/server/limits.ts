import type { ServerOptions as Http1Options } from "node:http";
import type { ServerOptions as Http2Options } from "node:http2";

/** How long a connection may take to say which protocol it speaks. */
export const PREFACE_TIMEOUT_MS = 5_000;

/** How long a TLS handshake may take. */
export const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;

/** Longer than proxies keep pooled connections, so that the proxy is the one that closes them. */
const IDLE_CONNECTION_MS = 640_000;

/** A request of one message that stops arriving for so long is given up; streams may pause for as long as their callers like. */
export const MESSAGE_IDLE_TIMEOUT_MS = 60_000;

/** How long a client may go on sending after it was answered, before its stream or connection is closed. */
export const LINGER_MS = 2_000;

/** Calls in progress that needed no token, over all connections: whoever reaches the port can start them and never end them. */
export const MAX_PUBLIC_CALLS = 64;

/** From asking for a ticket to opening the WebSocket a browser takes a moment. */
export const TICKET_LIFETIME_MS = 30_000;

/** What a WebSocket takes at once. */
export const MAX_WEBSOCKET_MESSAGE_BYTES = 1024 * 1024;

/** Over all callers. What a connection costs before it has shown a token must not add up without a bound. */
export const MAX_CONNECTIONS = 2048;

export const HTTP1_OPTIONS: Http1Options = {
  // A slow upload is not an attack: it may take any time once its headers are in.
  requestTimeout: 0,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: IDLE_CONNECTION_MS,
  maxHeaderSize: 16 * 1024,
  // Finds peers that vanished without closing.
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
  noDelay: true,
};

export const HTTP2_OPTIONS: Http2Options = {
  // MiB of queued output and state a connection may have. The default of 10 refuses streams to a client that multiplexes a few
  // dozen downloads; what a stream may queue is bounded by back-pressure.
  maxSessionMemory: 512,
  // Clients that cancel watches and commands a lot are normal here: the default refills 33 a second. A flood ends with the burst.
  streamResetBurst: 2_000,
  streamResetRate: 1_000,
  // One for each upload that ends, see RequestBody; the keep-alive's is one more.
  maxOutstandingPings: 2048,
  settings: {
    // An upload waits for a window update after so much; the default of 64 KiB costs a round trip each time.
    initialWindowSize: 1024 * 1024,
    maxConcurrentStreams: 1024,
    maxHeaderListSize: 16 * 1024,
    // Node's callbacks cost per frame, and the default frame is 16 KiB.
    maxFrameSize: 256 * 1024,
  },
};

/** Of a whole connection; HTTP/2 has no setting for it, only window updates. */
export const HTTP2_CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;

/** Between pings to a connection with calls in progress; a peer that has not answered by the next one is gone. */
export const HTTP2_PING_INTERVAL_MS = 30_000;

export const HTTP2_IDLE_TIMEOUT_MS = IDLE_CONNECTION_MS;
