import type { ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import { handleOf } from "./stream-handle.js";

/** Takes what arrives on a stream. */
export interface DirectReader {
  /** Where the next bytes belong; never empty. */
  room(): Uint8Array;
  /** So many bytes are there now. */
  arrived(bytes: number): void;
}

/** Tells the caller to wait, or to go on. What it has been allowed to send before still arrives. */
export interface ReadControl {
  pause(): void;
  resume(): void;
}

type Internals = Record<symbol, unknown>;

/** The names under which `new Socket({ onread })` keeps its buffers, and Node's reading of any stream looks for them. */
const names = symbolsOf(new Socket({ onread: { buffer: new Uint8Array(1), callback: () => true } }));
const [kBuffer, kBufferCb, kBufferGen] = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) => names.get(name));

/**
 * Has Node put what arrives on an HTTP/2 stream where the reader says, as the option `onread` does for sockets. Otherwise each frame of
 * 16 KiB is a buffer of its own that keeps the 64 KiB alive which it was read in, and collecting those costs twice as much as all the rest
 * of an upload. Undefined, and nothing is changed, for a Node that is made differently; and for a stream of which something has arrived.
 */
export function readDirectly(stream: ServerHttp2Stream, reader: DirectReader): ReadControl | undefined {
  if (kBuffer === undefined || kBufferCb === undefined || kBufferGen === undefined) return undefined;
  const handle = handleOf(stream);
  if (stream.readableLength > 0 || typeof handle?.useUserBuffer !== "function") return undefined;
  const internals = stream as unknown as Internals;
  const first = reader.room();
  internals[kBuffer] = first;
  internals[kBufferGen] = () => reader.room();
  internals[kBufferCb] = (bytes: number) => {
    reader.arrived(bytes);
    return true;
  };
  handle.useUserBuffer(first);
  // The end still comes this way.
  stream.resume();
  return { pause: () => handleOf(stream)?.readStop?.(), resume: () => handleOf(stream)?.readStart?.() };
}

function symbolsOf(object: object): Map<string | undefined, symbol> {
  return new Map(Object.getOwnPropertySymbols(object).map((symbol) => [symbol.description, symbol]));
}
