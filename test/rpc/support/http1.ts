import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Daemon } from "../../helpers/start-daemon.js";

export interface PlainAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One request on a connection of its own, which is closed afterwards. */
export async function ask(
  daemon: Daemon,
  path: string,
  options: RequestOptions = {},
  body?: string | Uint8Array,
): Promise<PlainAnswer> {
  const asked = request({ host: "127.0.0.1", port: daemon.port, path, agent: false, ...options });
  // A refusal may come before the whole body has left; the answer is what counts.
  asked.on("error", () => undefined);
  asked.end(body);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) };
}

/** Opens a connection on which nothing goes wrong when the daemon ends it. */
export async function openSocket(daemon: Daemon): Promise<Socket> {
  const socket = connect(daemon.port, "127.0.0.1");
  await once(socket, "connect");
  return socket.on("error", () => undefined);
}

/** Sends bytes as they are and resolves with everything that comes back until the daemon closes. */
export async function exchange(daemon: Daemon, ...parts: readonly (string | Uint8Array)[]): Promise<string> {
  const socket = await openSocket(daemon);
  let received = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    received += chunk;
  });
  for (const part of parts) if (!socket.destroyed) socket.write(part);
  // A reset is one way to close.
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  return received;
}
