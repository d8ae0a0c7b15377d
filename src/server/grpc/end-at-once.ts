import type { ServerHttp2Stream } from "node:http2";
import { handleOf } from "./stream-handle.js";

const OK = { "grpc-status": "0" };

/** The same as Node hands it on to HTTP/2's library, once it has. */
let okAsHandedOn: unknown;

/**
 * Ends an answer with a last piece, which may be none, and the trailers of success. All leaves in one packet: Node by itself notices
 * after the last piece has gone that it was the last, and sends trailers a turn of the event loop later. A trailer may be submitted when
 * the last piece is taken (https://nghttp2.org/documentation/nghttp2_submit_trailer.html); what waits is Node's JavaScript.
 * @param isAlone nothing that was written before waits for something else to go.
 */
export function endAtOnce(stream: ServerHttp2Stream, last: Uint8Array | undefined, isAlone: boolean, done: () => void): void {
  stream.once("wantTrailers", () => sendOk(stream));
  stream.end(last, done);
  // Node does the same when the last piece has gone, and then in vain.
  if (isAlone && !stream.destroyed) stream._final(() => undefined);
}

function sendOk(stream: ServerHttp2Stream): void {
  const handle = handleOf(stream);
  if (okAsHandedOn !== undefined && handle?.trailers !== undefined) {
    if (handle.trailers(okAsHandedOn) < 0) stream.destroy();
    return;
  }
  const trailers = handle?.trailers;
  if (handle !== undefined && trailers !== undefined) {
    handle.trailers = (list) => {
      okAsHandedOn = list;
      return trailers.call(handle, list);
    };
  }
  stream.sendTrailers(OK);
}
