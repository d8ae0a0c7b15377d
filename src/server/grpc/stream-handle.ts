import type { ServerHttp2Stream } from "node:http2";

/** What Node drives an HTTP/2 stream by. */
export interface StreamHandle {
  useUserBuffer(buffer: Uint8Array): void;
  readStart(): void;
  readStop(): void;
  trailers(list: unknown): number;
}

let kHandle: symbol | undefined;

/** Undefined for a stream that is destroyed, and in a Node that is made differently. */
export function handleOf(stream: ServerHttp2Stream): Partial<StreamHandle> | undefined {
  if (stream.destroyed) return undefined;
  kHandle ??= Object.getOwnPropertySymbols(stream).find(({ description }) => description === "kHandle");
  return kHandle === undefined ? undefined : (stream as unknown as Record<symbol, StreamHandle | undefined>)[kHandle];
}
