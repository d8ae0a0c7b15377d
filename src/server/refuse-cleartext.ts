import { constants } from "node:http2";
import type { Socket } from "node:net";
import { LINGER_MS } from "./limits.js";

const WHY = "this port speaks TLS: use https";
const GOAWAY = 0x7;
const SETTINGS = 0x4;

/** Tells a client of HTTP/1.1, or whatever else it speaks, that it has to speak TLS. */
export function refuseHttp1(socket: Socket): void {
  const body = `${WHY}\n`;
  const head = ["HTTP/1.1 400 Bad Request", "connection: close", "content-type: text/plain; charset=utf-8"];
  farewell(socket, Buffer.from(`${head.join("\r\n")}\r\ncontent-length: ${body.length}\r\n\r\n${body}`));
}

/** The same in HTTP/2: the end of the connection, with the reason as debug data (RFC 9113, section 6.8), which clients show. */
export function refuseHttp2(socket: Socket): void {
  const debugData = Buffer.from(WHY);
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(constants.NGHTTP2_INADEQUATE_SECURITY, 4);
  farewell(socket, Buffer.concat([frame(SETTINGS, Buffer.alloc(0)), frame(GOAWAY, Buffer.concat([payload, debugData]))]));
}

/** Of the whole connection: its stream is 0. */
function frame(type: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  return Buffer.concat([head, payload]);
}

/** Says the last word and listens a while: closed while the client still sends, the connection is reset, and the reset overtakes the answer. */
function farewell(socket: Socket, bytes: Buffer): void {
  socket.on("error", () => undefined);
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", () => socket.destroy());
  socket.end(bytes);
  socket.resume();
}
