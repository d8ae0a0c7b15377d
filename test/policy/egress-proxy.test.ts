import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../src/os/network-namespace.js";
import { DomainList } from "../../src/policy/network/domain-list.js";
import { EgressProxy, type Refused } from "../../src/policy/network/egress-proxy.js";
import { eventually } from "../helpers/eventually.js";

interface Proxied extends AsyncDisposable {
  readonly port: number;
  readonly refused: Refused[];
}

/** A proxy on a port that was free a moment ago. Use with `await using`. */
async function startProxy(domains: readonly string[]): Promise<Proxied> {
  const probe = createTcpServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  await closed(probe);
  const refused: Refused[] = [];
  const proxy = new EgressProxy(listenOnLoopback(port), new DomainList(domains), (each) => refused.push(each));
  return {
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
    const gone = createTcpServer();
    const port = await listen(gone);
    await closed(gone);
    await using proxy = await startProxy([`127.0.0.1:${port}`]);
    expect(await raw(proxy.port, `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toContain("502 Bad Gateway");
    expect((await get(proxy.port, `http://127.0.0.1:${port}/`)).statusCode).toBe(502);
  });
});
