import { lookup } from "node:dns/promises";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { errnoName } from "../../os/system-error.js";
import { connectToAny } from "./connect-to-any.js";
import { type Destination, type DomainList, parseDestination } from "./domain-list.js";
import { Exchange } from "./exchange.js";

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
/** RFC 9110, 7.6.1: for one connection alone. */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"];

/** Why something was not let through. */
export interface Refused {
  readonly destination: string;
  readonly why: string;
}

export interface ProxyLimits {
  /** Of clients, and of what is under way for them, each. */
  readonly maxConnections: number;
  /** To all addresses of a name together. */
  readonly connectTimeoutMs: number;
  /** From the end of a request to the headers of its answer. */
  readonly answerTimeoutMs: number;
  /** A connection that says nothing for so long is given up. */
  readonly idleTimeoutMs: number;
}

const LIMITS: ProxyLimits = {
  maxConnections: 256,
  connectTimeoutMs: 30_000,
  answerTimeoutMs: 5 * 60_000,
  idleTimeoutMs: 10 * 60_000,
};

/** What the proxy itself answers. */
class OwnAnswer extends Error {
  readonly status: string;

  constructor(status: string, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * The only way out of the network of a capability: an HTTP proxy (CONNECT, and requests in absolute form) that lets through what is
 * listed. A name is resolved once, here, and connected to as it was resolved. A connection does one request, so that whoever counts
 * connections has counted what they lead to.
 */
export class EgressProxy {
  #domains: DomainList;
  readonly #onRefused: (refused: Refused) => void;
  readonly #limits: ProxyLimits;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  /** Clients that have had their request. */
  readonly #used = new WeakSet<Duplex>();
  readonly #exchanges = new Set<Exchange>();

  /** @param fd a socket that listens, which becomes the proxy's. */
  constructor(fd: number, domains: DomainList, onRefused: (refused: Refused) => void, limits: Partial<ProxyLimits> = {}) {
    this.#domains = domains;
    this.#onRefused = onRefused;
    this.#limits = { ...LIMITS, ...limits };
    this.#server = createServer((incoming, response) => void this.#forward(incoming, response));
    this.#server.maxConnections = this.#limits.maxConnections;
    this.#server.on("connection", (socket) => this.#keep(socket));
    this.#server.on("connect", (incoming, socket: Duplex, head) => void this.#tunnel(incoming, socket, head));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
    this.#server.listen({ fd });
    // Commands that use it keep the daemon busy, not the proxy itself.
    this.#server.unref();
  }

  /** What is listed from now on. What goes to anything else is ended. */
  allow(domains: DomainList): void {
    this.#domains = domains;
    for (const exchange of this.#exchanges) {
      if (!exchange.isWithin(domains)) exchange.end(new OwnAnswer("403 Forbidden", "network.allowed_domains has it no longer"));
    }
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #tunnel(incoming: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    if (!this.#isFirstOf(client)) return;
    const exchange = new Exchange(parseDestination(incoming.url ?? "", HTTPS_PORT), incoming.url ?? "", client);
    let upstream: Socket | undefined;
    try {
      upstream = await this.#connect(exchange);
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) upstream.write(head);
      await Promise.all([pipeline(client, upstream), pipeline(upstream, client)]);
    } catch (error) {
      const [status, why] = explain(exchange.reason ?? error);
      if (upstream === undefined && client.writable) {
        client.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\npicod: ${why}\n`);
      }
    } finally {
      this.#exchanges.delete(exchange);
      // What was said at last has been handed over, or the peer has gone.
      if (upstream !== undefined) client.destroy();
    }
  }

  async #forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", socket: client } = incoming;
    if (!this.#isFirstOf(client)) return;
    const target = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
    const exchange = new Exchange(parseDestination(target?.[1] ?? "", HTTP_PORT), url, client);
    try {
      const upstream = await this.#connect(exchange);
      try {
        await this.#exchange(incoming, response, upstream, exchange, target);
      } finally {
        upstream.destroy();
      }
    } catch (error) {
      const [status, why] = explain(exchange.reason ?? error);
      const headers = { "content-type": "text/plain", connection: "close" };
      if (response.headersSent) response.destroy();
      else response.writeHead(Number(status.slice(0, 3)), headers).end(`picod: ${why}\n`);
    } finally {
      this.#exchanges.delete(exchange);
    }
  }

  async #exchange(
    incoming: IncomingMessage,
    response: ServerResponse,
    upstream: Socket,
    exchange: Exchange,
    target: RegExpExecArray | null,
  ): Promise<void> {
    const headers = withoutHopByHop(incoming);
    headers.host = target?.[1] ?? "";
    const path = target?.[2]?.replace(/^\?/, "/?") ?? "/";
    const { method = "GET" } = incoming;
    const outgoing = request({ createConnection: () => upstream, method, path, headers, setHost: false });
    let timeout: NodeJS.Timeout | undefined;
    const giveUp = () => exchange.end(new OwnAnswer("504 Gateway Timeout", "no answer"));
    const wait = () => {
      timeout = setTimeout(giveUp, this.#limits.answerTimeoutMs).unref();
    };
    outgoing.once("finish", wait);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      // An answer that changes the protocol only closes.
      outgoing.once("response", resolve).once("error", reject).once("close", reject);
    });
    // An answer may come before the whole body was sent.
    const sent = pipeline(incoming, outgoing).catch(() => undefined);
    const answer = await answered.finally(() => {
      outgoing.off("finish", wait);
      clearTimeout(timeout);
    });
    response.writeHead(answer.statusCode ?? 502, { ...withoutHopByHop(answer), connection: "close" });
    await pipeline(answer, response);
    await sent;
  }

  /** Whether that is its one request. Whoever sends another one is cut off: the answer says, or was to say, that the connection closes. */
  #isFirstOf(client: Duplex): boolean {
    const isFirst = !this.#used.has(client);
    this.#used.add(client);
    if (!isFirst) client.destroy();
    return isFirst;
  }

  /** @throws OwnAnswer; the errno of the lookup or of the connection. */
  async #connect(exchange: Exchange): Promise<Socket> {
    const { destination, asked, signal } = exchange;
    const { maxConnections, connectTimeoutMs } = this.#limits;
    const refuse = (why: string) => {
      this.#onRefused({ destination: asked.slice(0, 300), why });
      return new OwnAnswer("403 Forbidden", `${asked.slice(0, 300)}: ${why}`);
    };
    if (destination === undefined) throw refuse("it is not a host and a port, or not a form that this proxy knows");
    if (!this.#domains.allows(destination)) throw refuse("network.allowed_domains does not have it");
    // Clients that have gone may still be here: nobody can end a lookup.
    if (this.#exchanges.size >= maxConnections) throw new OwnAnswer("503 Service Unavailable", "too many connections");
    this.#exchanges.add(exchange);
    const allowed = await this.#lookUp(destination);
    if (allowed.length === 0) throw refuse("it leads to an address that is not public, or to this machine");
    exchange.addresses = allowed.map(({ address }) => address);
    const upstream = await connectToAny(allowed, destination.port, connectTimeoutMs, signal);
    this.#keep(upstream);
    exchange.onEnd(() => upstream.destroy());
    return upstream;
  }

  async #lookUp({ host, port }: Destination): Promise<{ address: string; family: number }[]> {
    const found = await lookup(host, { all: true });
    return found.filter(({ address }) => this.#domains.allowsAddress(address, port));
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    if ("setTimeout" in socket) (socket as Socket).setTimeout(this.#limits.idleTimeoutMs, () => socket.destroy());
  }
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
  if (error instanceof OwnAnswer) return [error.status, error.message];
  const { code } = error as NodeJS.ErrnoException;
  return ["502 Bad Gateway", `cannot connect: ${errnoName(error) ?? code ?? "the connection failed"}`];
}
