import { read } from "node:fs";
import { paddingAfter } from "./tar-block.js";

/** From here on there is enough for a chunk. */
const CHUNK_BYTES = 256 * 1024;
/** Room for a chunk and what comes right after it. */
const CAPACITY_BYTES = 2 * CHUNK_BYTES;

/** Collects an archive into chunks. While one is being sent another is filled: there are two buffers. */
export class ArchiveOutput {
  #filling = Buffer.allocUnsafeSlow(CAPACITY_BYTES);
  #sending = Buffer.allocUnsafeSlow(CAPACITY_BYTES);
  #at = 0;

  /** There is enough for a chunk. */
  get isFull(): boolean {
    return this.#at >= CHUNK_BYTES;
  }

  /** Bytes that fit without growing. */
  get room(): number {
    return this.#filling.length - this.#at;
  }

  append(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#filling.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  appendZeros(bytes: number): void {
    this.#reserve(bytes);
    this.#filling.fill(0, this.#at, this.#at + bytes);
    this.#at += bytes;
  }

  padAfter(contentBytes: number): void {
    this.appendZeros(paddingAfter(contentBytes));
  }

  /** Lets `fill` write content of that many bytes at once; what it has written counts. Returns how many. */
  fillWith(bytes: number, fill: (buffer: Buffer) => number): number {
    this.#reserve(bytes);
    const filled = fill(this.#filling.subarray(this.#at, this.#at + bytes));
    this.#at += filled;
    return filled;
  }

  /** Reads a part of a file, on a thread, into what is left of the chunk. Resolves with the bytes read. */
  readFrom(fd: number, position: number, bytes: number): Promise<number> {
    const buffer = this.#filling;
    const length = Math.min(bytes, CHUNK_BYTES - this.#at);
    return new Promise((resolve, reject) => {
      read(fd, buffer, this.#at, length, position, (error, bytesRead) => {
        if (error) return reject(error);
        this.#at += bytesRead;
        resolve(bytesRead);
      });
    });
  }

  /** What was collected; valid until the next is taken. */
  take(): Buffer {
    const taken = this.#filling.subarray(0, this.#at);
    [this.#filling, this.#sending] = [this.#sending, this.#filling];
    this.#at = 0;
    return taken;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.room) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + bytes));
    larger.set(this.#filling.subarray(0, this.#at));
    this.#filling = larger;
  }
}
