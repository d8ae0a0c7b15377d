import { request as requestCleartext } from "node:http";
import { request as requestSecure } from "node:https";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { SecureContextOptions } from "node:tls";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";

/** A peer that has vanished is noticed so, while a stream is silent. */
const KEEPALIVE_MS = 15_000;
const WITHOUT_BODY = [204, 205, 304];

/**
 * A fetch that takes authorities and a client certificate, and waits for a silent stream as long as it lasts: Node's own does neither. Each
 * request has a connection of its own, so that none is lost to one that was closed meanwhile.
 */
export function createRemoteFetch(tls: SecureContextOptions): FetchLike {
  return (url, { method = "GET", headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const request = new URL(url).protocol === "https:" ? requestSecure : requestCleartext;
      const options = { method, headers: Object.fromEntries(new Headers(headers)), agent: false as const, ...tls };
      const sent = request(url, { ...options, ...(signal && { signal }) }, (message) => {
        const { statusCode = 0, statusMessage = "", headers: received } = message;
        const named = Object.entries(received).map(([name, value]) => [name, String(value)]);
        const init = { status: statusCode, statusText: statusMessage, headers: Object.fromEntries(named) };
        if (WITHOUT_BODY.includes(statusCode)) message.resume();
        const stream = Readable.toWeb(message) as ReadableStream<Uint8Array>;
        resolve(new Response(WITHOUT_BODY.includes(statusCode) ? null : stream, init));
      });
      sent.on("socket", (socket: Socket) => socket.setKeepAlive(true, KEEPALIVE_MS));
      sent.on("error", reject);
      sent.end(body);
    });
}
