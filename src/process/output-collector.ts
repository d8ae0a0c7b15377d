import { isUtf8 } from "node:buffer";
import { countNewlines, Ring } from "./ring.js";

/** What was kept of one stream, as text, and what was not. `totalBytes` = bytes that it stands for + `omittedBytes`. */
export interface CollectedOutput {
  /** Nobody changes it. */
  readonly utf8: Buffer;
  readonly text: string;
  readonly totalBytes: number;
  readonly omittedBytes: number;
  readonly omittedLines: number;
  readonly utf8Replaced: boolean;
}

/**
 * Keeps the first and the last half of a stream and counts what lies between. The limit holds for the text as UTF-8 too, where
 * each byte that is no UTF-8 becomes a U+FFFD of three bytes.
 */
export class OutputCollector {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: Ring;
  readonly #tail: Ring;
  #totalBytes = 0;
  #omittedLines = 0;

  constructor(limitBytes: number) {
    this.#headLimit = Math.ceil(limitBytes / 2);
    this.#tailLimit = limitBytes - this.#headLimit;
    this.#head = new Ring(this.#headLimit);
    this.#tail = new Ring(this.#tailLimit);
  }

  /** Takes a chunk; the caller may use its memory again afterwards. */
  push(chunk: Uint8Array): void {
    this.#totalBytes += chunk.length;
    const toHead = Math.min(chunk.length, this.#headLimit - this.#head.length);
    if (toHead > 0) this.#head.push(chunk.subarray(0, toHead));
    if (toHead < chunk.length) this.#pushToTail(chunk.subarray(toHead));
  }

  #pushToTail(chunk: Uint8Array): void {
    const { ofOld, ofNew } = this.#tail.evictedBy(chunk);
    this.#omittedLines += this.#tail.newlinesOfOldest(ofOld) + countNewlines(chunk, 0, ofNew);
    this.#tail.push(chunk);
  }

  /** @param mark what stands in the text for what is left out; it does not count. */
  collect(mark: (omittedBytes: number, omittedLines: number) => string = () => ""): CollectedOutput {
    const head = this.#head.toBuffer();
    const tail = this.#tail.toBuffer();
    if (head.length + tail.length < this.#totalBytes) return this.#cut(head, tail, mark);
    const all = tail.length === 0 ? head : Buffer.concat([head, tail]);
    if (isUtf8(all)) return this.#result(all, 0, this.#omittedLines, false);
    const replaced = Buffer.from(all.toString("utf8"));
    if (replaced.length <= this.#headLimit + this.#tailLimit) return this.#result(replaced, 0, this.#omittedLines, true);
    return this.#cut(head, tail, mark);
  }

  /** Bytes that are not kept. */
  get droppedBytes(): number {
    return this.#totalBytes - this.keptBytes;
  }

  /** Bytes that are kept. */
  get keptBytes(): number {
    return this.#head.length + this.#tail.length;
  }

  /** What was kept, as it was written; where something is left out, or more than `limitBytes`, `mark` stands for it, and counts too. */
  toBytes(limitBytes: number, mark: (omittedBytes: number) => string): Buffer {
    const kept = Buffer.concat([this.#head.toBuffer(), this.#tail.toBuffer()]);
    if (kept.length === this.#totalBytes && kept.length <= limitBytes) return kept;
    const room = Math.max(0, Math.min(limitBytes, kept.length) - Buffer.byteLength(mark(this.#totalBytes)));
    const fromHead = Math.min(Math.ceil(room / 2), this.#head.length);
    const fromTail = Math.min(room - fromHead, kept.length - fromHead);
    const between = Buffer.from(mark(this.#totalBytes - fromHead - fromTail));
    return Buffer.concat([kept.subarray(0, fromHead), between, kept.subarray(kept.length - fromTail)]);
  }

  /** The cut must not add damage of its own: the head ends, and the tail starts, between characters. */
  #cut(head: Buffer, tail: Buffer, mark: (omittedBytes: number, omittedLines: number) => string): CollectedOutput {
    const keptHead = shorten(head, this.#headLimit, (length) => withoutPartialEnd(head.subarray(0, length)));
    const keptTail = shorten(tail, this.#tailLimit, (length) => withoutPartialStart(tail.subarray(tail.length - length)));
    const omittedBytes = this.#totalBytes - keptHead.length - keptTail.length;
    const cutLines = countNewlines(head, keptHead.length) + countNewlines(tail, 0, tail.length - keptTail.length);
    const omittedLines = this.#omittedLines + cutLines;
    const utf8 = Buffer.concat([toUtf8(keptHead), Buffer.from(mark(omittedBytes, omittedLines)), toUtf8(keptTail)]);
    return this.#result(utf8, omittedBytes, omittedLines, !isUtf8(keptHead) || !isUtf8(keptTail));
  }

  #result(utf8: Buffer, omittedBytes: number, omittedLines: number, utf8Replaced: boolean): CollectedOutput {
    return {
      utf8,
      get text() {
        return utf8.toString();
      },
      totalBytes: this.#totalBytes,
      omittedBytes,
      omittedLines,
      utf8Replaced,
    };
  }
}

function toUtf8(bytes: Buffer): Buffer {
  return isUtf8(bytes) ? bytes : Buffer.from(bytes.toString("utf8"));
}

/** Takes as many bytes as make a text within the limit. */
function shorten(bytes: Buffer, limit: number, take: (length: number) => Buffer): Buffer {
  let kept = take(bytes.length);
  for (let size = textBytes(kept); size > limit; size = textBytes(kept)) {
    kept = take(Math.max(0, Math.floor((kept.length * limit) / size) - 1));
  }
  return kept;
}

function textBytes(bytes: Buffer): number {
  return isUtf8(bytes) ? bytes.length : Buffer.byteLength(bytes.toString("utf8"));
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** Drops the bytes of a last character that is cut off. */
function withoutPartialEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/** Drops the rest of a first character that is cut off. */
function withoutPartialStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < Math.min(3, bytes.length) && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}
