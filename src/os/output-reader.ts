import { readSync } from "node:fs";
import { Socket } from "node:net";
import { ReadStream } from "node:tty";
import { errnoName } from "./system-error.js";

/** One buffer for all readers: what arrives is handed on within the same turn. */
const shared = Buffer.allocUnsafeSlow(64 * 1024);

/** What a pipe may hold, /proc/sys/fs/pipe-max-size. */
const MAX_PIPE_BYTES = 1024 * 1024;

export interface OutputListener {
  /** Gets a chunk that is valid for the call alone. */
  onData(chunk: Uint8Array): void;
  /** Called once, when everyone who could write has closed, or the terminal has no more programs. */
  onEnd(): void;
}

/** Reads what a program writes, from a pipe or from the daemon's side of a terminal. Owns the descriptor. */
export class OutputReader {
  readonly #fd: number;
  readonly #stream: Socket;
  readonly #listener: OutputListener;
  #discarding = false;
  #paused = false;
  #ended = false;

  constructor(fd: number, kind: "pipe" | "terminal", listener: OutputListener) {
    this.#fd = fd;
    this.#listener = listener;
    const callback = (length: number, buffer: Uint8Array) => {
      this.#deliver(buffer.subarray(0, length));
      return !this.#paused;
    };
    const options = { readable: true, writable: kind === "terminal", onread: { buffer: shared, callback } };
    // The types of tty know nothing of options, which it hands to Socket.
    const TerminalStream = ReadStream as unknown as new (fd: number, options: object) => ReadStream;
    this.#stream = kind === "pipe" ? new Socket({ fd, ...options }) : new TerminalStream(fd, options);
    if (kind === "terminal") this.#stream.resume();
    // A terminal whose last program has gone answers EIO: that is its end of file.
    this.#stream.on("error", () => this.#end());
    this.#stream.on("end", () => this.#end());
  }

  /** Of a terminal, whose two directions are one descriptor. */
  get input(): Socket {
    return this.#stream;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Takes nothing more, so that the program will have to wait when the pipe is full. */
  pause(): void {
    this.#paused = true;
    this.#stream.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#stream.resume();
  }

  /**
   * Takes what is there at this moment, paused or not, without waiting for the event loop to report it; somebody who goes on
   * writing is not waited for.
   */
  drainNow(): void {
    let rest = MAX_PIPE_BYTES;
    while (!this.#ended && rest > 0) {
      try {
        const length = readSync(this.#fd, shared, 0, shared.length, null);
        if (length === 0) this.#end();
        else this.#deliver(shared.subarray(0, length));
        rest -= length;
      } catch (error) {
        if (errnoName(error) === "EAGAIN") return;
        if (errnoName(error) !== "EIO") throw error;
        this.#end();
      }
    }
  }

  /**
   * Goes on reading into nothing: closing would end those who still write with SIGPIPE, such as a server that a command left in
   * the background. Does not keep the daemon from exiting.
   */
  discard(): void {
    this.#discarding = true;
    this.#stream.unref();
    this.resume();
  }

  /** Gives up reading, whoever still writes. */
  close(): void {
    this.#end();
  }

  #deliver(chunk: Uint8Array): void {
    if (!this.#discarding) this.#listener.onData(chunk);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stream.destroy();
    this.#listener.onEnd();
  }
}
