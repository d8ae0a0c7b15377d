/** Smaller messages cost less than the keeping of their memory. */
const MIN_BYTES = 16 * 1024;

/** Memory for the messages of one call, used again for later ones: new memory for all of an upload keeps V8 collecting garbage. */
export class MessageMemory {
  readonly #free: ArrayBufferLike[] = [];

  take(bytes: number): Buffer {
    if (bytes < MIN_BYTES) return Buffer.allocUnsafe(bytes);
    const at = this.#free.findIndex(({ byteLength }) => byteLength >= bytes);
    const [found] = this.#free.splice(Math.max(at, 0), 1);
    return at >= 0 && found !== undefined ? Buffer.from(found, 0, bytes) : Buffer.allocUnsafeSlow(bytes);
  }

  giveBack(message: Buffer): void {
    if (message.length >= MIN_BYTES) this.#free.push(message.buffer);
  }
}
