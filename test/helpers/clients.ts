import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { FilesystemService } from "../../src/gen/picod/v1/filesystem_pb.js";
import { ProcessService } from "../../src/gen/picod/v1/process_pb.js";
import { TOKEN } from "./start-daemon.js";

export type Protocol =
  | "gRPC"
  | "gRPC-Web over HTTP/1.1"
  | "gRPC-Web over HTTP/2"
  | "Connect over HTTP/1.1"
  | "Connect over HTTP/2";

export const PROTOCOLS: readonly Protocol[] = [
  "gRPC",
  "gRPC-Web over HTTP/1.1",
  "gRPC-Web over HTTP/2",
  "Connect over HTTP/1.1",
  "Connect over HTTP/2",
];

export interface Clients extends AsyncDisposable {
  readonly transport: Transport;
  readonly filesystem: Client<typeof FilesystemService>;
  readonly process: Client<typeof ProcessService>;
}

export interface ClientOptions {
  readonly protocol?: Protocol;
  /** Undefined: TOKEN; null: none. */
  readonly token?: string | null;
  /** Over TLS: whom to trust, and what to show. */
  readonly tls?: { readonly ca: string; readonly cert?: string; readonly key?: string };
}

/** Clients for one daemon, with a connection of their own that is closed at the end. Use with `await using`. */
export function connectTo(url: string, { protocol = "gRPC", token = TOKEN, tls }: ClientOptions = {}): Clients {
  const bearer: Interceptor = (next) => (request) => {
    if (token !== null) request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const sessionManager = protocol.endsWith("HTTP/1.1") ? undefined : new Http2SessionManager(url, undefined, tls);
  const common = { baseUrl: url, interceptors: [bearer] };
  const http2 = { ...common, httpVersion: "2" as const, ...(sessionManager === undefined ? {} : { sessionManager }) };
  const http1 = { ...common, httpVersion: "1.1" as const, nodeOptions: { agent: false as const, ...tls } };
  const transport = {
    gRPC: () => createGrpcTransport(http2),
    "gRPC-Web over HTTP/1.1": () => createGrpcWebTransport(http1),
    "gRPC-Web over HTTP/2": () => createGrpcWebTransport(http2),
    "Connect over HTTP/1.1": () => createConnectTransport(http1),
    "Connect over HTTP/2": () => createConnectTransport(http2),
  }[protocol]();
  return {
    transport,
    filesystem: createClient(FilesystemService, transport),
    process: createClient(ProcessService, transport),
    async [Symbol.asyncDispose]() {
      sessionManager?.abort();
    },
  };
}
