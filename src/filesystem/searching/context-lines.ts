const LF = 0x0a;
const CR = 0x0d;

export interface ContextOptions {
  /** Lines to keep before and after a match. */
  readonly contextBefore: number;
  readonly contextAfter: number;
  /** Bytes that are kept of a line. */
  readonly maxLineBytes: number;
}

/** What all lines around one match may take, so that it fits into a message. */
const MAX_CONTEXT_BYTES = 1024 * 1024;

/** Collects the lines around matches, each of them once, while a file goes by. */
export class ContextLines {
  readonly #options: ContextOptions;
  readonly #lineBytes: number;
  #before: string[] = [];
  #after: string[] | undefined;

  constructor(options: ContextOptions) {
    this.#options = options;
    const lines = options.contextBefore + options.contextAfter;
    this.#lineBytes = Math.min(options.maxLineBytes, Math.floor(MAX_CONTEXT_BYTES / Math.max(1, lines)));
  }

  /** The lines from one position to another are no matches. */
  pass(block: Buffer, from: number, to: number): void {
    let at = from;
    while (this.#after !== undefined && this.#after.length < this.#options.contextAfter && at < to) {
      const end = lineEnd(block, at, to);
      this.#after.push(this.#decode(block, at, end));
      at = end + 1;
    }
    const before: string[] = [];
    for (let end = to; end > at && before.length < this.#options.contextBefore; ) {
      const last = block[end - 1] === LF ? end - 1 : end;
      const start = at + block.subarray(at, last).lastIndexOf(LF) + 1;
      before.push(this.#decode(block, start, last));
      end = start;
    }
    if (before.length > 0) this.#before = [...this.#before, ...before.reverse()].slice(-this.#options.contextBefore);
  }

  /** A match comes: the lines before it, and where the lines after it will be, up to the next match. */
  match(): { before: string[]; after: string[] } {
    const before = this.#before;
    this.#before = [];
    this.#after = [];
    return { before, after: this.#after };
  }

  #decode(block: Buffer, start: number, end: number): string {
    const content = end > start && block[end] === LF && block[end - 1] === CR ? end - 1 : end;
    return cutText(block.subarray(start, content), 0, this.#lineBytes).toString();
  }
}

function lineEnd(block: Buffer, from: number, to: number): number {
  const newline = block.indexOf(LF, from);
  return newline < 0 || newline >= to ? to : newline;
}

/** A part of a text, less the halves of characters at its ends. */
export function cutText(text: Buffer, start: number, end: number): Buffer {
  let [from, to] = [start, Math.min(text.length, end)];
  const continues = (at: number) => ((text[at] ?? 0) & 0xc0) === 0x80;
  for (let step = 0; step < 3 && from > 0 && from < to && continues(from); step++) from++;
  for (let step = 0; step < 3 && to > from && continues(to); step++) to--;
  return text.subarray(from, to);
}
