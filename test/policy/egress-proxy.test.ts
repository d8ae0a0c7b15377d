import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../src/os/network-namespace.js";
import { DomainList } from "../../src/policy/network/domain-list.js";
import { EgressProxy, type ProxyLimits, type Refused } from "../../src/policy/network/egress-proxy.js";
import { eventually } from "../helpers/eventually.js";

interface Proxied extends AsyncDisposable {
  readonly proxy: EgressProxy;
  readonly port: number;
  readonly refused: Refused[];
}

/** A proxy on a port that was free a moment ago. Use with `await using`. */
async function startProxy(domains: readonly string[], limits: Partial<ProxyLimits> = {}): Promise<Proxied> {
  const probe = createTcpServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  await closed(probe);
  const refused: Refused[] = [];
  const proxy = new EgressProxy(listenOnLoopback(port), new DomainList(domains), (each) => refused.push(each), limits);
  return {
    proxy,
    port,
    refused,
    async [Symbol.asyncDispose]() {
      proxy.close();
    },
  };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function closed(server: Server): Promise<unknown> {
  return new Promise((resolve) => server.close(resolve));
}

/** Speaks first what it is asked, and returns all that comes back. */
async function raw(port: number, sent: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end(sent);
  return text(socket);
}

/** A server that takes connections and never answers. Use with `await using`. */
async function startSilent(): Promise<AsyncDisposable & { port: number; open: () => number; most: () => number }> {
  const sockets = new Set<Socket>();
  let most = 0;
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    most = Math.max(most, sockets.size);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
    socket.resume();
  });
  const port = await listen(server);
  return {
    port,
    open: () => sockets.size,
    most: () => most,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await closed(server);
    },
  };
}

/** A connection to the proxy that has said something. */
async function say(port: number, sent: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  await once(socket, "connect");
  socket.write(sent);
  return socket;
}

/** It was closed, in whichever way. */
function gone(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("close", resolve).resume());
}

async function get(proxyPort: number, path: string, body = "", headers = {}): Promise<IncomingMessage> {
  const outgoing = request({
    port: proxyPort,
    host: "127.0.0.1",
    method: body === "" ? "GET" : "POST",
    path,
    headers,
    agent: false,
  });
  outgoing.end(body);
  const [answer] = await once(outgoing, "response");
  return answer;
}

describe("the proxy", () => {
  it("forwards requests to what is listed, and no header that is meant for it", async () => {
    const web = createServer(async (incoming, response) => {
      response.setHeader(
        "x-seen",
        JSON.stringify([
          incoming.url,
          incoming.headers.host,
          incoming.headers["proxy-authorization"] ?? incoming.headers["x-hop"] ?? null,
        ]),
      );
      response.end((await text(incoming)).toUpperCase());
    });
    const port = await listen(web);
    await using proxy = await startProxy([`127.0.0.1:${port}`]);
    const answer = await get(proxy.port, `http://127.0.0.1:${port}/a?b=c`, "hello");
    expect(await text(answer)).toBe("HELLO");
    expect(answer.headers["x-seen"]).toBe(JSON.stringify(["/a?b=c", `127.0.0.1:${port}`, null]));
    const hidden = { host: "evil.org", "proxy-authorization": "x", connection: "close, x-hop", "x-hop": "1" };
    const second = await get(proxy.port, `http://127.0.0.1:${port}/`, "", hidden);
    expect(second.headers["x-seen"]).toBe(JSON.stringify(["/", `127.0.0.1:${port}`, null]));
    second.resume();
    expect(proxy.refused).toEqual([]);
    web.closeAllConnections();
    await closed(web);
  });

  it("tunnels to what is listed, both ways until one end closes, and leaves nothing open", async () => {
    const echo = createTcpServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    const port = await listen(echo);
    await using proxy = await startProxy([`127.0.0.1:${port}`]);
    const answer = await raw(proxy.port, `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\nfirst, second`);
    expect(answer).toBe("HTTP/1.1 200 Connection established\r\n\r\nfirst, second");
    const idle = connect(proxy.port, "127.0.0.1");
    idle.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`);
    await once(idle, "data");
    idle.destroy();
    const count = () => new Promise<number>((resolve) => echo.getConnections((_error, connections) => resolve(connections)));
    await eventually("the tunnel is closed", async () => (await count()) === 0);
    await closed(echo);
  });

  it("refuses all others, and says so", async () => {
    await using proxy = await startProxy(["example.org", "*.example.org", "localhost"]);
    for (const [line, why] of [
      ["CONNECT evil.org:443", "allowed_domains does not have it"],
      ["CONNECT example.org:22", "allowed_domains does not have it"],
      ["CONNECT 169.254.169.254:80", "allowed_domains does not have it"],
      ["CONNECT localhost:443", "not public"],
      ["CONNECT /", "not a host and a port"],
      ["GET http://evil.org/", "allowed_domains does not have it"],
      ["GET http://169.254.169.254/latest/meta-data/", "allowed_domains does not have it"],
      ["GET http://example.org@evil.org/", "not a host and a port"],
      ["GET /", "not a host and a port"],
      ["GET ftp://example.org/", "not a host and a port"],
    ]) {
      const answer = await raw(proxy.port, `${line} HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
      expect(proxy.refused.pop()?.why).toContain(why);
    }
    expect(await raw(proxy.port, "\0\0\0")).toBe("");
  });

  it("says that it cannot connect, and does not end", async () => {
    const server = createTcpServer();
    const port = await listen(server);
    await closed(server);
    await using proxy = await startProxy([`127.0.0.1:${port}`]);
    expect(await raw(proxy.port, `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toContain("502 Bad Gateway");
    expect((await get(proxy.port, `http://127.0.0.1:${port}/`)).statusCode).toBe(502);
  });

  it("does one request on a connection: whoever sends the next before its answer, or after it, is cut off", async () => {
    await using silent = await startSilent();
    await using proxy = await startProxy([`127.0.0.1:${silent.port}`]);
    const request = `GET http://127.0.0.1:${silent.port}/ HTTP/1.1\r\nhost: x\r\n\r\n`;
    for (const second of [request.repeat(4000), `CONNECT 127.0.0.1:${silent.port} HTTP/1.1\r\n\r\n`]) {
      const pipelining = await say(proxy.port, request + second);
      await gone(pipelining);
      await eventually("nothing is held", () => silent.open() === 0);
      expect(silent.most()).toBeLessThanOrEqual(1);
    }
    const refused = await say(proxy.port, "GET http://evil.org/ HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(await text(refused)).toMatch(/403 Forbidden[\s\S]*connection: close/i);
    await gone(await say(proxy.port, "GET http://evil.org/ HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100)));
    expect(proxy.refused).toHaveLength(2);
  });

  it("holds nothing for a client that has gone", async () => {
    await using silent = await startSilent();
    await using proxy = await startProxy([`127.0.0.1:${silent.port}`]);
    const asked = [
      `GET http://127.0.0.1:${silent.port}/ HTTP/1.1\r\nhost: x\r\n\r\n`,
      `POST http://127.0.0.1:${silent.port}/ HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf`,
      `CONNECT 127.0.0.1:${silent.port} HTTP/1.1\r\n\r\n`,
    ];
    const clients = await Promise.all(asked.map((each) => say(proxy.port, each)));
    await eventually("all are connected", () => silent.open() === asked.length);
    for (const client of clients) client.destroy();
    await eventually("all are closed", () => silent.open() === 0);
  });

  it("has so many ways out at once, and one that is left is free again", async () => {
    await using silent = await startSilent();
    await using proxy = await startProxy([`127.0.0.1:${silent.port}`], { maxConnections: 3 });
    const request = `GET http://127.0.0.1:${silent.port}/ HTTP/1.1\r\nhost: x\r\n\r\n`;
    const tunnel = `CONNECT 127.0.0.1:${silent.port} HTTP/1.1\r\n\r\n`;
    const clients = await Promise.all([request, tunnel, tunnel].map((each) => say(proxy.port, each)));
    await eventually("all are connected", () => silent.open() === 3);
    const fourth = await say(proxy.port, tunnel);
    expect(await text(fourth).catch(() => "")).toBe("");
    expect(silent.most()).toBe(3);
    clients[0]?.destroy();
    await eventually("it is free again", () => silent.open() === 2);
    clients.push(await say(proxy.port, tunnel));
    await eventually("the next is connected", () => silent.open() === 3);
    for (const client of clients) client.destroy();
  });

  it("waits for an answer only so long", async () => {
    await using silent = await startSilent();
    await using proxy = await startProxy([`127.0.0.1:${silent.port}`], { answerTimeoutMs: 50 });
    const answer = await get(proxy.port, `http://127.0.0.1:${silent.port}/`);
    expect([answer.statusCode, await text(answer)]).toEqual([504, "picod: no answer\n"]);
    await eventually("it is closed", () => silent.open() === 0);
  });

  it("ends what goes to a host that is listed no longer, and nothing else", async () => {
    await using delisted = await startSilent();
    await using kept = await startSilent();
    await using proxy = await startProxy([`127.0.0.1:${delisted.port}`, `127.0.0.1:${kept.port}`]);
    const to = (port: number) => [
      `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nhost: x\r\n\r\n`,
      `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`,
    ];
    const clients = await Promise.all([...to(delisted.port), ...to(kept.port)].map((each) => say(proxy.port, each)));
    await eventually("all are connected", () => delisted.open() === 2 && kept.open() === 2);
    const ended = clients.slice(0, 2).map((client) => gone(client));
    proxy.proxy.allow(new DomainList([`127.0.0.1:${kept.port}`]));
    await Promise.all(ended);
    await eventually("the ways out are closed", () => delisted.open() === 0);
    expect(kept.open()).toBe(2);
    for (const client of clients) client.destroy();
  });
});
