import type { Socket } from "node:net";

/** What every HTTP/2 connection starts with, RFC 9113 section 3.4. */
const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** The first byte of a TLS connection: a record of the handshake, RFC 8446 section 5.1. */
const TLS_HANDSHAKE = 0x16;

/** Takes a connection on, with nothing taken away. */
export type TakeConnection = (socket: Socket) => void;

/** Says by the first bytes of a connection who takes it; undefined: more are needed. */
export type Route = (seen: Buffer) => TakeConnection | undefined;

/** HTTP/2 by prior knowledge, or HTTP/1.1. */
export function byPreface(onHttp1: TakeConnection, onHttp2: TakeConnection): Route {
  return (seen) => {
    const compared = Math.min(seen.length, HTTP2_PREFACE.length);
    const matches = seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared));
    if (matches && compared < HTTP2_PREFACE.length) return undefined;
    return matches ? onHttp2 : onHttp1;
  };
}

/** TLS, or what would be taken otherwise. */
export function byTls(onTls: TakeConnection, otherwise: Route): Route {
  return (seen) => (seen[0] === TLS_HANDSHAKE ? onTls : otherwise(seen));
}

/** Looks at the first bytes of a connection and hands it on. One that says nothing decisive within `timeoutMs` is closed. */
export function routeConnection(socket: Socket, timeoutMs: number, route: Route): void {
  let seen = Buffer.alloc(0);
  const close = () => socket.destroy();
  let lastLook: NodeJS.Immediate | undefined;
  // What has arrived while the daemon was held up is read first.
  const timer = setTimeout(() => {
    lastLook = setImmediate(close);
  }, timeoutMs);
  const stop = () => {
    clearTimeout(timer);
    clearImmediate(lastLook);
    socket.off("readable", look).off("end", close).off("error", close).off("close", stop);
  };
  const look = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = Buffer.concat([seen, chunk]);
      const take = route(seen);
      if (take === undefined) continue;
      stop();
      // Put back once and as a whole: doing so while still listening for "readable" would loop for ever.
      socket.unshift(seen);
      return take(socket);
    }
  };
  socket.on("readable", look).on("end", close).on("error", close).on("close", stop);
}
