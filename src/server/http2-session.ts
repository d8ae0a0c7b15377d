import type { Http2Session, ServerHttp2Session } from "node:http2";
import { HTTP2_CONNECTION_WINDOW_BYTES, HTTP2_IDLE_TIMEOUT_MS, HTTP2_PING_INTERVAL_MS } from "./limits.js";

/** Keeps one HTTP/2 connection healthy: widens its window, ends it when it idles, finds out when its peer has vanished. */
export function tendSession(session: ServerHttp2Session): void {
  session.setLocalWindowSize(HTTP2_CONNECTION_WINDOW_BYTES);
  session.setTimeout(HTTP2_IDLE_TIMEOUT_MS, () => session.close());
  // Protocol errors of the peer end its session and nothing else.
  session.on("error", () => undefined);
  let streams = 0;
  session.on("stream", (stream) => {
    streams++;
    stream.once("close", () => streams--);
  });
  let unanswered = false;
  const timer = setInterval(() => {
    if (unanswered) return session.destroy();
    if (streams > 0) unanswered = ping(session, () => (unanswered = false));
  }, HTTP2_PING_INTERVAL_MS).unref();
  session.once("close", () => clearInterval(timer));
}

/**
 * Resolves when everything has arrived that the peer had decided to send, or when it is gone. It takes two pings: answers to
 * pings overtake what still waits to be sent, and leave together with it.
 */
export async function quiesce(session: Http2Session): Promise<void> {
  for (let pings = 0; pings < 2 && !session.destroyed; pings++) {
    await new Promise<void>((resolve) => {
      // Pings that are outstanding when a session ends are called back with an error.
      if (!ping(session, resolve)) resolve();
    });
  }
}

function ping(session: Http2Session, onAnswer: () => void): boolean {
  return !session.destroyed && session.ping(onAnswer);
}
