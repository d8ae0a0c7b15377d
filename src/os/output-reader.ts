import { closeSync, constants } from "node:fs";
import { Socket } from "node:net";
import { constants as osConstants } from "node:os";
import { ReadStream } from "node:tty";
import { errno, libc } from "./libc.js";
import { check, systemError } from "./system-error.js";

/** What the pipe of a program that prints much holds, where the user may have so much: fewer turns for both sides. */
const LARGE_PIPE_BYTES = 256 * 1024;
/**
 * One buffer for all readers: what arrives is handed on within the same turn. Larger than a pipe, because libuv reads on for as long as it
 * is filled, and nobody else is to wait for a program that prints as fast as it is read.
 */
const shared = Buffer.allocUnsafeSlow(LARGE_PIPE_BYTES + 4096);

/** What a pipe may hold, /proc/sys/fs/pipe-max-size. */
const MAX_PIPE_BYTES = 1024 * 1024;

export interface OutputListener {
  /** Gets a chunk that is valid for the call alone. */
  onData(chunk: Uint8Array): void;
  /** Called once, when everyone who could write has closed, or the terminal has no more programs. */
  onEnd(): void;
}

const F_SETFL = 4;
const F_SETPIPE_SZ = 1031;
const { EAGAIN, EINTR, EIO } = osConstants.errno;

/** How long after its start a program is looked after for the first time; from look to look it is twice as long… */
const FIRST_LOOK_MS = 1;
/** …up to here, or to one that finds so much: then the event loop is asked to report what comes. */
const LAST_LOOK_MS = 16;
const MUCH_BYTES = 4096;

/**
 * Reads what a program writes, from a pipe or from the daemon's side of a terminal. Owns the descriptor.
 *
 * Most programs end within milliseconds and print little, and for them a stream of Node would cost more than all the reading: a pipe is
 * looked into now and then at first, and whoever sees the program end calls `drainNow`.
 */
export class OutputReader {
  readonly #fd: number;
  readonly #kind: "pipe" | "terminal";
  readonly #listener: OutputListener;
  /** Undefined as long as the pipe is looked into. */
  #stream: Socket | undefined;
  #nextLook: NodeJS.Timeout | undefined;
  #discarding = false;
  #paused = false;
  #ended = false;

  constructor(fd: number, kind: "pipe" | "terminal", listener: OutputListener) {
    this.#fd = fd;
    this.#kind = kind;
    this.#listener = listener;
    if (kind === "terminal") {
      this.#open().resume();
      return;
    }
    check(libc.fcntl(fd, F_SETFL, constants.O_NONBLOCK), "fcntl");
    this.#lookIn(FIRST_LOOK_MS);
  }

  /** Of a terminal, whose two directions are one descriptor. */
  get input(): Socket {
    return this.#stream ?? this.#open();
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
    this.#stream?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#stream?.resume();
  }

  /**
   * Takes what is there at this moment, paused or not, without waiting for the event loop to report it; somebody who goes on
   * writing is not waited for.
   */
  drainNow(): void {
    for (let rest = MAX_PIPE_BYTES, length = -1; length !== 0 && rest > 0; rest -= length) length = this.#readOnce();
  }

  /**
   * Goes on reading into nothing: closing would end those who still write with SIGPIPE, such as a server that a command left in
   * the background. Does not keep the daemon from exiting.
   */
  discard(): void {
    if (this.#ended) return;
    this.#discarding = true;
    (this.#stream ?? this.#open()).unref();
    this.resume();
  }

  /** Gives up reading, whoever still writes. */
  close(): void {
    this.#end();
  }

  #lookIn(delayMs: number): void {
    this.#nextLook = setTimeout(() => {
      const length = this.#paused ? 0 : this.#readOnce();
      if (this.#ended) return;
      if (length >= MUCH_BYTES) libc.fcntl(this.#fd, F_SETPIPE_SZ, LARGE_PIPE_BYTES);
      if (length >= MUCH_BYTES || delayMs >= LAST_LOOK_MS) this.#open();
      else this.#lookIn(delayMs * 2);
    }, delayMs);
  }

  /** Returns how much it was; 0 when nothing is there, or nothing will come any more. */
  #readOnce(): number {
    if (this.#ended) return 0;
    const length = libc.read(this.#fd, shared, shared.length);
    if (length > 0) {
      this.#deliver(shared.subarray(0, length));
      return length;
    }
    const number = length === 0 ? 0 : errno();
    if (number === EAGAIN) return 0;
    if (number === EINTR) return this.#readOnce();
    if (number !== 0 && number !== EIO) throw systemError("read", undefined, number);
    this.#end();
    return 0;
  }

  /** From now on the event loop reports what comes. */
  #open(): Socket {
    clearTimeout(this.#nextLook);
    const callback = (length: number, buffer: Uint8Array) => {
      this.#deliver(buffer.subarray(0, length));
      return !this.#paused;
    };
    const options = { readable: true, writable: this.#kind === "terminal", onread: { buffer: shared, callback } };
    // The types of tty know nothing of options, which it hands to Socket.
    const TerminalStream = ReadStream as unknown as new (fd: number, options: object) => ReadStream;
    const stream = this.#kind === "pipe" ? new Socket({ fd: this.#fd, ...options }) : new TerminalStream(this.#fd, options);
    this.#stream = stream;
    // A terminal whose last program has gone answers EIO: that is its end of file.
    stream.on("error", () => this.#end());
    stream.on("end", () => this.#end());
    if (this.#paused) stream.pause();
    return stream;
  }

  #deliver(chunk: Uint8Array): void {
    if (!this.#discarding) this.#listener.onData(chunk);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#nextLook);
    if (this.#stream === undefined) closeSync(this.#fd);
    else this.#stream.destroy();
    this.#listener.onEnd();
  }
}
