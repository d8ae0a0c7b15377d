import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";

const READ_BYTES = 512 * 1024;

/** A local file that is sent, in pieces and perhaps some of them again, and hashed on the way. Use with `await using`. */
export class LocalSource implements AsyncDisposable {
  /** As it was when the file was opened: what is appended afterwards is not sent. */
  readonly size: number;
  readonly #path: string | Buffer;
  readonly #file: FileHandle;
  readonly #hash = createHash("sha256");
  #hashed = 0;
  #sha256: string | undefined;

  private constructor(path: string | Buffer, file: FileHandle, size: number) {
    this.#path = path;
    this.#file = file;
    this.size = size;
  }

  static async open(path: string | Buffer): Promise<LocalSource> {
    const file = await open(path);
    try {
      const stats = await file.stat();
      if (stats.isFile()) return new LocalSource(path, file, stats.size);
      throw Object.assign(new Error(`not a regular file: ${path}`), { code: stats.isDirectory() ? "EISDIR" : "EINVAL", path });
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async *read(start: number, end: number): AsyncGenerator<Buffer<ArrayBuffer>> {
    for (let at = start; at < end; ) {
      const piece = await this.#readAt(at, end);
      yield piece;
      at += piece.length;
    }
  }

  /** Of all of it. What has not been read yet is read. */
  async sha256(): Promise<string> {
    while (this.#hashed < this.size) await this.#readAt(this.#hashed, this.size);
    this.#sha256 ??= this.#hash.digest("hex");
    return this.#sha256;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close();
  }

  async #readAt(at: number, end: number): Promise<Buffer<ArrayBuffer>> {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at));
    const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new ConnectError(`the file shrank while it was sent: ${this.#path}`, Code.DataLoss);
    const piece = buffer.subarray(0, bytesRead);
    // In order only: pieces that come too early are read again for it, those that come again are not.
    if (at <= this.#hashed && at + bytesRead > this.#hashed) {
      this.#hash.update(piece.subarray(this.#hashed - at));
      this.#hashed = at + bytesRead;
    }
    return piece;
  }
}
