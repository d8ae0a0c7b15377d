import { Ring } from "./ring.js";

/**
 * One stream of a process: everything that was written has a place, counted in bytes from the start, and the last part is kept.
 * One writer, any number of readers, each of which remembers its own place.
 */
export class OutputLog {
  readonly #ring: Ring;
  #limitBytes: number;
  #heldFrom = Number.POSITIVE_INFINITY;
  #end = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
    this.#ring = new Ring(limitBytes);
  }

  /** Offset behind the last byte. */
  get end(): number {
    return this.#end;
  }

  /** Offset of the oldest byte that is kept. */
  get keptFrom(): number {
    return this.#end - this.#ring.length;
  }

  get keptBytes(): number {
    return this.#ring.length;
  }

  get limitBytes(): number {
    return this.#limitBytes;
  }

  setLimit(limitBytes: number): void {
    this.#limitBytes = limitBytes;
    this.#applyLimit(0);
  }

  /** Keeps what lies behind that offset, however much it is; infinity: nothing in particular. */
  holdFrom(offset: number): void {
    this.#heldFrom = offset;
  }

  push(chunk: Uint8Array): void {
    this.#applyLimit(chunk.length);
    this.#ring.push(chunk);
    this.#end += chunk.length;
  }

  /** Gives back what was reserved: nothing more will be written. */
  compact(): void {
    this.#ring.setLimit(this.#ring.length);
  }

  /** A copy of what is kept from `offset` on, `maxBytes` at most. The offset lies between `keptFrom` and `end`. */
  read(offset: number, maxBytes: number): Buffer {
    const copied = Buffer.allocUnsafeSlow(Math.min(maxBytes, this.#end - offset));
    this.readInto(copied, offset);
    return copied;
  }

  /** Fills `target` with what is kept from `offset` on, which must be as much. */
  readInto(target: Uint8Array, offset: number): void {
    this.#ring.copyTo(target, offset - this.keptFrom);
  }

  #applyLimit(comingBytes: number): void {
    this.#ring.setLimit(Math.max(this.#limitBytes, this.#end - this.#heldFrom + comingBytes));
  }
}
