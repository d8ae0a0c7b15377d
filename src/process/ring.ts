const NEWLINE = 10;
const FIRST_CAPACITY = 1024;

/** The last bytes of a stream, up to a limit, in one buffer that grows as it is needed. */
export class Ring {
  #limit: number;
  #buffer = Buffer.alloc(0);
  #start = 0;
  #length = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Lowers or raises the limit; the oldest bytes go when there are more. */
  setLimit(limitBytes: number): void {
    this.#limit = limitBytes;
    this.#drop(Math.max(0, this.#length - limitBytes));
    if (this.#buffer.length > limitBytes) this.#resize(limitBytes);
  }

  /** Copies from the `from`th oldest byte on until `target` is full. */
  copyTo(target: Uint8Array, from: number): void {
    const count = target.length;
    const at = this.#buffer.length === 0 ? 0 : (this.#start + from) % this.#buffer.length;
    const untilEnd = Math.min(count, this.#buffer.length - at);
    target.set(this.#buffer.subarray(at, at + untilEnd));
    target.set(this.#buffer.subarray(0, count - untilEnd), untilEnd);
  }

  /** How many bytes of the ring, and then of the chunk, pushing it would evict. */
  evictedBy(chunk: Uint8Array): { readonly ofOld: number; readonly ofNew: number } {
    const evicted = Math.max(0, this.#length + chunk.length - this.#limit);
    const ofOld = Math.min(evicted, this.#length);
    return { ofOld, ofNew: evicted - ofOld };
  }

  /** Copies the chunk in; the oldest bytes make room. */
  push(chunk: Uint8Array): void {
    const { ofOld, ofNew } = this.evictedBy(chunk);
    this.#drop(ofOld);
    this.#append(chunk.subarray(ofNew));
  }

  /** Newlines among the oldest `count` bytes. */
  newlinesOfOldest(count: number): number {
    const end = this.#start + count;
    const untilEnd = Math.min(end, this.#buffer.length);
    return countNewlines(this.#buffer, this.#start, untilEnd) + countNewlines(this.#buffer, 0, end - this.#buffer.length);
  }

  toBuffer(): Buffer {
    const end = this.#start + this.#length;
    const first = this.#buffer.subarray(this.#start, Math.min(end, this.#buffer.length));
    return end <= this.#buffer.length ? first : Buffer.concat([first, this.#buffer.subarray(0, end - this.#buffer.length)]);
  }

  #append(chunk: Uint8Array): void {
    this.#reserve(this.#length + chunk.length);
    const at = this.#buffer.length === 0 ? 0 : (this.#start + this.#length) % this.#buffer.length;
    const untilEnd = Math.min(chunk.length, this.#buffer.length - at);
    this.#buffer.set(chunk.subarray(0, untilEnd), at);
    this.#buffer.set(chunk.subarray(untilEnd), 0);
    this.#length += chunk.length;
  }

  #drop(count: number): void {
    if (count === 0) return;
    this.#start = (this.#start + count) % this.#buffer.length;
    this.#length -= count;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return;
    this.#resize(Math.min(this.#limit, Math.max(bytes, this.#buffer.length * 4, FIRST_CAPACITY)));
  }

  #resize(bytes: number): void {
    const resized = Buffer.allocUnsafeSlow(bytes);
    resized.set(this.toBuffer());
    this.#buffer = resized;
    this.#start = 0;
  }
}

/** In a plain loop: on short lines it is many times faster than repeated indexOf. */
export function countNewlines(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let count = 0;
  for (let index = from; index < to; index++) if (bytes[index] === NEWLINE) count++;
  return count;
}
