import { createServer, type Server, type ServerOpts, type Socket } from "node:net";
import { duplicate } from "../os/duplicate.js";

/** Descriptors that listen when nothing is going on; each that finds nothing costs a system call a connection. */
const AT_REST = 4;
/** … and when more come than are let in. */
const AT_MOST = 64;
/** So long after the last turn in which all of them let somebody in, there are fewer again. */
const REST_AFTER_MS = 1_000;

/**
 * Lets several connections in with each turn of the event loop. libuv takes one per listening descriptor (libuv #3696): while the daemon
 * is kept from running for long, turns are few, and whoever connects anew would wait for one turn for each who came before. So a server
 * that listens gets further descriptors of its socket, the more the longer its queue is.
 */
export class Acceptors {
  readonly #fd: number;
  readonly #options: ServerOpts;
  readonly #onConnection: (socket: Socket) => void;
  readonly #onError: (error: Error) => void;
  readonly #servers: Server[] = [];
  #acceptedInTurn = 0;
  #rest: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param options as those of `server`. Its own connections are to be told to `accepted`. */
  constructor(server: Server, options: ServerOpts, onConnection: (socket: Socket) => void, onError: (error: Error) => void) {
    this.#fd = (server as unknown as { _handle?: { fd?: number } })._handle?.fd ?? -1;
    this.#options = options;
    this.#onConnection = onConnection;
    this.#onError = onError;
    this.#growTo(AT_REST);
  }

  /** A connection has come by one of the descriptors. */
  accepted(): void {
    if (this.#acceptedInTurn++ === 0) setImmediate(() => this.#endTurn());
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#rest);
    this.#shrinkTo(1);
  }

  #endTurn(): void {
    const present = this.#servers.length + 1;
    const isFull = this.#acceptedInTurn >= present;
    this.#acceptedInTurn = 0;
    if (!isFull || this.#closed) return;
    this.#growTo(Math.min(present * 2, AT_MOST));
    this.#rest ??= setTimeout(() => this.#shrinkTo(AT_REST), REST_AFTER_MS).unref();
    this.#rest.refresh();
  }

  /** As far as there are descriptors: calls need them, too. */
  #growTo(descriptors: number): void {
    try {
      while (this.#servers.length < descriptors - 1) this.#servers.push(this.#listenOn(duplicate(this.#fd)));
    } catch {
      this.#shrinkTo(AT_REST);
    }
  }

  #listenOn(fd: number): Server {
    const server = createServer(this.#options).on("connection", this.#onConnection).on("error", this.#onError);
    return server.listen({ fd });
  }

  #shrinkTo(descriptors: number): void {
    for (const server of this.#servers.splice(descriptors - 1)) server.close();
  }
}
