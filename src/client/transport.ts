import type { ClientHttp2Session } from "node:http2";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { Instance } from "./instance.js";

type SessionManager = NonNullable<Parameters<typeof createGrpcTransport>[0]["sessionManager"]>;

const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
const PING_INTERVAL_MS = 30_000;
const MAX_RECEIVE_BYTES = 512 * 1024 * 1024;

export interface Connection {
  readonly url: string;
  /** What every request carries. */
  headers(): Record<string, string>;
  readonly transport: Transport;
  readonly instance: Instance;
  /** Aborts with `close`. */
  readonly closed: AbortSignal;
  /** Lets the connection last until that is done, when it is closed meanwhile. */
  beforeClosing(promise: Promise<unknown>): void;
  /** Ends the connection and, with it, every call that is in progress. */
  close(): void;
}

/** gRPC over one HTTP/2 connection, made on first use and made again when it breaks. */
export function connect(url: string, token: string | undefined): Connection {
  const options = { settings: { initialWindowSize: STREAM_WINDOW_BYTES } };
  const manager = new Http2SessionManager(url, { pingIntervalMs: PING_INTERVAL_MS }, options);
  const headers = (): Record<string, string> => (token === undefined ? {} : { authorization: `Bearer ${token}` });
  const bearer: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers())) request.header.set(name, value);
    return next(request);
  };
  const instance = new Instance();
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager: withWideWindow(manager),
    interceptors: [bearer, instance.interceptor],
    readMaxBytes: MAX_RECEIVE_BYTES,
  });
  const closed = new AbortController();
  const unfinished = new Set<Promise<unknown>>();
  const beforeClosing = (promise: Promise<unknown>) => {
    const settled: Promise<unknown> = promise.catch(() => undefined).then(() => unfinished.delete(settled));
    unfinished.add(settled);
  };
  const close = async () => {
    closed.abort();
    // What is in progress may begin something else on its way out.
    while (unfinished.size > 0) await Promise.all(unfinished);
    manager.abort();
  };
  return { url, headers, transport, instance, closed: closed.signal, beforeClosing, close: () => void close() };
}

/** HTTP/2 has a window for the whole connection too; Node leaves it at 64 KiB, and a download at 40 MiB/s. */
function withWideWindow(manager: Http2SessionManager): SessionManager {
  const widened = new WeakSet<ClientHttp2Session>();
  return {
    authority: manager.authority,
    async request(method, path, headers, options) {
      const stream = await manager.request(method, path, headers, options);
      const { session } = stream;
      if (session !== undefined && !widened.has(session as ClientHttp2Session)) {
        widened.add(session as ClientHttp2Session);
        (session as ClientHttp2Session).setLocalWindowSize(CONNECTION_WINDOW_BYTES);
      }
      return stream;
    },
    notifyResponseByteRead: (stream) => manager.notifyResponseByteRead(stream),
  };
}
