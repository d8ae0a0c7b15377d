import { lookup } from "node:dns/promises";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { errnoName } from "../../os/system-error.js";
import { type Destination, type DomainList, parseDestination } from "./domain-list.js";

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const MAX_CONNECTIONS = 256;
const CONNECT_TIMEOUT_MS = 30_000;
/** A connection that says nothing for so long is given up. */
const IDLE_TIMEOUT_MS = 10 * 60_000;
/** RFC 9110, 7.6.1: for one connection alone. */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"];

/** Why something was not let through. */
export interface Refused {
  readonly destination: string;
  readonly why: string;
}

class Refusal extends Error {}

/**
 * The only way out of the network of a capability: an HTTP proxy (CONNECT, and requests in absolute form) that lets through what is
 * listed. A name is resolved once, here, and connected to as it was resolved.
 */
export class EgressProxy {
  domains: DomainList;
  readonly #onRefused: (refused: Refused) => void;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  /** @param fd a socket that listens, which becomes the proxy's. */
  constructor(fd: number, domains: DomainList, onRefused: (refused: Refused) => void) {
    this.domains = domains;
    this.#onRefused = onRefused;
    this.#server = createServer({ keepAliveTimeout: 5_000 }, (incoming, response) => void this.#forward(incoming, response));
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("connection", (socket) => this.#keep(socket));
    this.#server.on("connect", (incoming, socket: Duplex, head) => void this.#tunnel(incoming, socket, head));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
    this.#server.listen({ fd });
    // Commands that use it keep the daemon busy, not the proxy itself.
    this.#server.unref();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #tunnel(incoming: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on("error", () => undefined);
    let upstream: Socket | undefined;
    try {
      upstream = await this.#connect(parseDestination(incoming.url ?? "", HTTPS_PORT), incoming.url ?? "", client);
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) upstream.write(head);
      await Promise.all([pipeline(client, upstream), pipeline(upstream, client)]);
    } catch (error) {
      const [status, why] = explain(error);
      if (upstream === undefined && client.writable) {
        client.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\npicod: ${why}\n`);
      }
    } finally {
      upstream?.destroy();
      // What was said at last has been handed over, or the peer has gone.
      if (upstream !== undefined) client.destroy();
    }
  }

  async #forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", method = "GET" } = incoming;
    try {
      const target = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
      const upstream = await this.#connect(parseDestination(target?.[1] ?? "", HTTP_PORT), url, incoming.socket);
      try {
        const headers = withoutHopByHop(incoming);
        headers.host = target?.[1] ?? "";
        const path = target?.[2]?.replace(/^\?/, "/?") ?? "/";
        const outgoing = request({ createConnection: () => upstream, method, path, headers, setHost: false });
        const answered = new Promise<IncomingMessage>((resolve, reject) => {
          outgoing.once("response", resolve).once("error", reject);
        });
        // An answer may come before the whole body was sent.
        const sent = pipeline(incoming, outgoing).catch(() => undefined);
        const answer = await answered;
        response.writeHead(answer.statusCode ?? 502, withoutHopByHop(answer));
        await pipeline(answer, response);
        await sent;
      } finally {
        upstream.destroy();
      }
    } catch (error) {
      const [status, why] = explain(error);
      if (response.headersSent) response.destroy();
      else response.writeHead(Number(status.slice(0, 3)), { "content-type": "text/plain" }).end(`picod: ${why}\n`);
    }
  }

  /** @throws Refusal; the errno of the lookup or of the connection. */
  async #connect(destination: Destination | undefined, asked: string, client: Duplex): Promise<Socket> {
    const refuse = (why: string) => {
      this.#onRefused({ destination: asked.slice(0, 300), why });
      return new Refusal(`${asked.slice(0, 300)}: ${why}`);
    };
    if (destination === undefined) throw refuse("it is not a host and a port, or not a form that this proxy knows");
    if (!this.domains.allows(destination)) throw refuse("network.allowed_domains does not have it");
    const found = await lookup(destination.host, { all: true });
    const allowed = found.filter(({ address }) => this.domains.allowsAddress(address));
    if (allowed.length === 0) throw refuse("it leads to an address that is not public");
    if (client.destroyed) throw new Error("the client has gone");
    const upstream = await connectToAny(allowed, destination.port);
    this.#keep(upstream);
    return upstream;
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    if ("setTimeout" in socket) (socket as Socket).setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
  }
}

async function connectToAny(addresses: readonly { address: string; family: number }[], port: number): Promise<Socket> {
  let failure: unknown;
  for (const { address, family } of addresses) {
    try {
      return await connectTo(address, family, port);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function connectTo(host: string, family: number, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, family, port, timeout: CONNECT_TIMEOUT_MS });
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
    socket.once("timeout", () => socket.destroy(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })));
  });
}

function withoutHopByHop({ rawHeaders, headers }: IncomingMessage): Record<string, string | string[]> {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const kept: Record<string, string | string[]> = {};
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? "").toLowerCase();
    if (HOP_BY_HOP.includes(name) || named.includes(name)) continue;
    const [before, value] = [kept[name], rawHeaders[i + 1] ?? ""];
    kept[name] = before === undefined ? value : [before, value].flat();
  }
  return kept;
}

function explain(error: unknown): [status: string, why: string] {
  if (error instanceof Refusal) return ["403 Forbidden", error.message];
  const { code } = error as NodeJS.ErrnoException;
  return ["502 Bad Gateway", `cannot connect: ${errnoName(error) ?? code ?? "the connection failed"}`];
}
