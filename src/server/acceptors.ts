import { closeSync } from "node:fs";
import { createServer, type Server, type ServerOpts, type Socket } from "node:net";
import { duplicate } from "../os/duplicate.js";

/**
 * Connections that are accepted in one turn of the event loop. libuv takes one per listening descriptor (libuv #3696): while the daemon is kept
 * from running for long, turns are few, and whoever connects anew would wait for one turn for each who came before. Each descriptor that finds
 * nothing costs a system call per connection.
 */
const ACCEPTED_PER_TURN = 8;

/** Listens for a server that listens already on further descriptors of its socket. */
export class Acceptors {
  readonly #servers: Server[] = [];

  /** @param options as those of `server`. Want of descriptors makes it fewer. */
  constructor(server: Server, options: ServerOpts, onConnection: (socket: Socket) => void, onError: (error: Error) => void) {
    const { fd } = (server as unknown as { _handle?: { fd?: number } })._handle ?? {};
    if (fd === undefined || fd < 0) return;
    try {
      while (this.#servers.length < ACCEPTED_PER_TURN - 1) this.#servers.push(listenOn(duplicate(fd), options));
    } catch (error) {
      onError(error as Error);
    }
    for (const each of this.#servers) each.on("connection", onConnection).on("error", onError);
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }
}

function listenOn(fd: number, options: ServerOpts): Server {
  try {
    return createServer(options).listen({ fd });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
