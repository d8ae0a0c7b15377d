import { Agent as HttpAgent } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { Agent as HttpsAgent } from "node:https";
import type { SecureContextOptions } from "node:tls";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { Instance } from "./instance.js";

type SessionManager = NonNullable<Parameters<typeof createGrpcTransport>[0]["sessionManager"]>;

const STREAM_WINDOW_BYTES = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
const PING_INTERVAL_MS = 30_000;
const MAX_RECEIVE_BYTES = 512 * 1024 * 1024;

/** TLS for an `https://` address. All of it is PEM, as text or bytes. */
export interface TlsOptions {
  /** Whom to trust. Default: the authorities that come with Node. */
  readonly ca?: string | Uint8Array;
  /** The client's certificate chain and its key, where the daemon knows callers by them. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  /** The name to expect in the daemon's certificate instead of the host of the address. */
  readonly servername?: string;
}

export interface Connection {
  readonly url: string;
  /** What every request carries. */
  headers(): Record<string, string>;
  readonly transport: Transport;
  /** For what goes over plain HTTP beside it. */
  readonly agent: HttpAgent;
  readonly instance: Instance;
  /** Aborts with `close`. */
  readonly closed: AbortSignal;
  /** Lets the connection last until that is done, when it is closed meanwhile. */
  beforeClosing(promise: Promise<unknown>): void;
  /** Ends the connection and, with it, every call that is in progress. */
  close(): void;
}

/** gRPC over one HTTP/2 connection, made on first use and made again when it breaks. */
export function connect(url: string, token: string | undefined, tls: TlsOptions | undefined): Connection {
  const secure = toNode(tls);
  const options = { settings: { initialWindowSize: STREAM_WINDOW_BYTES }, ...secure };
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
  const agent = url.startsWith("https:") ? new HttpsAgent({ keepAlive: true, ...secure }) : new HttpAgent({ keepAlive: true });
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
    agent.destroy();
  };
  return { url, headers, transport, agent, instance, closed: closed.signal, beforeClosing, close: () => void close() };
}

/** Node takes bytes as a Buffer. */
function toNode({ ca, cert, key, servername }: TlsOptions = {}): SecureContextOptions & { servername?: string } {
  const given = Object.entries({ ca, cert, key }).filter(([, pem]) => pem !== undefined);
  const pems = given.map(([name, pem]) => [name, typeof pem === "string" ? pem : Buffer.from(pem as Uint8Array)]);
  return { ...Object.fromEntries(pems), ...(servername === undefined ? {} : { servername }) };
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
