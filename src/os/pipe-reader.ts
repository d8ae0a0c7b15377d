import { readSync } from "node:fs";
import { Socket } from "node:net";
import { errnoName } from "./system-error.js";

/** One buffer for all readers: what arrives is handed on within the same turn. */
const shared = Buffer.allocUnsafeSlow(64 * 1024);

/** Reads the output end of a pipe until everyone who could write to it has closed it. Owns the descriptor. */
export class PipeReader {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #onEnd: () => void;
  #onData: (chunk: Uint8Array) => void;
  #ended = false;

  /** `onData` gets a chunk that is valid for the call alone; `onEnd` is called once. */
  constructor(fd: number, onData: (chunk: Uint8Array) => void, onEnd: () => void) {
    this.#fd = fd;
    this.#onData = onData;
    this.#onEnd = onEnd;
    this.#socket = new Socket({
      fd,
      readable: true,
      writable: false,
      onread: {
        buffer: shared,
        callback: (length, buffer) => {
          this.#onData(buffer.subarray(0, length));
          return true;
        },
      },
    });
    this.#socket.on("error", () => this.#end());
    this.#socket.on("end", () => this.#end());
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Takes what is in the pipe at this moment, without waiting for the event loop to report it. */
  drainNow(): void {
    while (!this.#ended) {
      try {
        const length = readSync(this.#fd, shared, 0, shared.length, null);
        if (length === 0) this.#end();
        this.#onData(shared.subarray(0, length));
      } catch (error) {
        if (errnoName(error) === "EAGAIN") return;
        throw error;
      }
    }
  }

  /**
   * Goes on reading into nothing: closing would end those who still write with SIGPIPE, such as a server that a command left in
   * the background. Does not keep the daemon from exiting.
   */
  discard(): void {
    this.#onData = () => undefined;
    this.#socket.unref();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#socket.destroy();
    this.#onEnd();
  }
}
