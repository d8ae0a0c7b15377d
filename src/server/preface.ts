import type { Socket } from "node:net";

/** What every HTTP/2 connection starts with, RFC 9113 section 3.4. */
const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Looks at the first bytes of a connection and hands it on, with nothing taken away, to the protocol that they begin. A
 * connection that says nothing decisive within `timeoutMs` is closed.
 */
export function routeByPreface(
  socket: Socket,
  timeoutMs: number,
  onHttp1: (socket: Socket) => void,
  onHttp2: (socket: Socket) => void,
): void {
  let seen = Buffer.alloc(0);
  const close = () => socket.destroy();
  const timer = setTimeout(close, timeoutMs);
  const stop = () => {
    clearTimeout(timer);
    socket.off("readable", look).off("end", close).off("error", close).off("close", stop);
  };
  const look = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, HTTP2_PREFACE.length);
      const matches = seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared));
      if (matches && compared < HTTP2_PREFACE.length) continue;
      stop();
      // Put back once and as a whole: doing so while still listening for "readable" would loop for ever.
      socket.unshift(seen);
      return matches ? onHttp2(socket) : onHttp1(socket);
    }
  };
  socket.on("readable", look).on("end", close).on("error", close).on("close", stop);
}
