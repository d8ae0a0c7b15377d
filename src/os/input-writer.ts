import { closeSync, constants, writeSync } from "node:fs";
import { Socket } from "node:net";
import { libc } from "./libc.js";
import { check, errnoName } from "./system-error.js";

const F_SETFL = 4;

/** Writes to the standard input of a program in order, as fast as it reads. Owns the descriptor of a pipe. */
export class InputWriter {
  readonly #stream: Socket;
  #closed = false;
  #waiting: (() => void)[] = [];

  constructor(stream: Socket) {
    this.#stream = stream;
    // A program need not read its input; one that has closed it gets no more.
    stream.on("error", () => {
      this.#closed = true;
    });
    stream.on("close", () => this.#tellWaiting());
  }

  static toPipe(fd: number): InputWriter {
    return new InputWriter(new Socket({ fd, readable: false, writable: true }));
  }

  get closed(): boolean {
    return this.#closed || this.#stream.destroyed;
  }

  /** Bytes that the program has not taken yet, the pipe's own buffer not counted. */
  get queuedBytes(): number {
    return this.#stream.writableLength;
  }

  /** Keeps the bytes until they are written; the caller may not change them. */
  write(data: Uint8Array): void {
    // Not the event "drain", which follows only on more than the high-water mark.
    this.#stream.write(data, () => {
      if (this.queuedBytes === 0) this.#tellWaiting();
    });
  }

  /** `write` that resolves when the program's side has taken it. @throws EPIPE and the like. */
  writeFully(data: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(data, (error) => {
        if (this.queuedBytes === 0) this.#tellWaiting();
        if (error) reject(error);
        else resolve();
      });
    });
  }

  /** Resolves when nothing is queued, or no more can be written. */
  drained(): Promise<void> {
    if (this.queuedBytes === 0 || this.closed) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** End of file after what is queued. */
  end(): void {
    this.#closed = true;
    this.#stream.end();
  }

  /** Gives up what is queued. */
  destroy(): void {
    this.#closed = true;
    this.#stream.destroy();
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/**
 * Writes everything to a pipe and closes it. What fits into the pipe is written at once, without a stream; that is nearly always
 * all of it. Owns the descriptor. Returns what is still being written.
 */
export function writeAndClose(fd: number, content: Uint8Array): InputWriter | undefined {
  check(libc.fcntl(fd, F_SETFL, constants.O_NONBLOCK), "fcntl");
  const written = writeNow(fd, content);
  if (written === content.length) {
    closeSync(fd);
    return undefined;
  }
  const writer = InputWriter.toPipe(fd);
  writer.write(content.subarray(written));
  writer.end();
  return writer;
}

/** How many bytes are done with. */
function writeNow(fd: number, content: Uint8Array): number {
  let written = 0;
  try {
    while (written < content.length) written += writeSync(fd, content, written);
  } catch (error) {
    if (errnoName(error) === "EPIPE") return content.length;
    if (errnoName(error) !== "EAGAIN") throw error;
  }
  return written;
}
