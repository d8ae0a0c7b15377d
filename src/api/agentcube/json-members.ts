import { PicodError } from "../../errors/picod-error.js";

/** Of a value that is taken as a whole. */
const MAX_VALUE_BYTES = 64 * 1024;
const SPACE = [0x20, 0x09, 0x0a, 0x0d];
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPENING = [0x7b, 0x5b];
const CLOSING = [0x7d, 0x5d];

/** A member of the object. */
export type JsonMember =
  | { readonly name: string; readonly value: unknown }
  /** A string of any length, in pieces; all of it must have been taken before the next member is asked for. */
  | { readonly name: string; readonly pieces: AsyncIterable<string> };

/**
 * The members of the one JSON object that a body is, in their order; the string of the member `long` may have any length, and is ASCII. All
 * other values are small. @throws INVALID_ARGUMENT when it is not such an object.
 */
export async function* jsonMembers(body: AsyncIterable<Uint8Array>, long: string): AsyncGenerator<JsonMember, void, void> {
  const input = new JsonInput(body);
  await input.expect(0x7b, "an object");
  if ((await input.peek()) === CLOSING[0]) return input.end();
  for (;;) {
    const name = parse(await input.rawValue());
    if (typeof name !== "string") throw invalidJson("the name of a member is a string");
    await input.expect(COLON, "a colon");
    if (name === long && (await input.peek()) === QUOTE) yield { name, pieces: input.stringPieces() };
    else yield { name, value: parse(await input.rawValue()) };
    if ((await input.peek()) === CLOSING[0]) return input.end();
    await input.expect(COMMA, "a comma");
  }
}

class JsonInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#chunks = body[Symbol.asyncIterator]();
  }

  /** The next byte that is not space. */
  async peek(): Promise<number> {
    for (;;) {
      const at = this.#rest.findIndex((byte) => !SPACE.includes(byte));
      this.#rest = at < 0 ? Buffer.alloc(0) : this.#rest.subarray(at);
      if (at >= 0) return this.#rest[0] as number;
      await this.#readMore();
    }
  }

  async expect(byte: number, what: string): Promise<void> {
    if ((await this.peek()) !== byte) throw invalidJson(`expected ${what}`);
    this.#rest = this.#rest.subarray(1);
  }

  /** The text of one value. */
  async rawValue(): Promise<string> {
    await this.peek();
    let depth = 0;
    let quoted = false;
    for (let at = 0; ; at++) {
      if (at > MAX_VALUE_BYTES) throw invalidJson("a value is too long");
      while (at >= this.#rest.length) await this.#readMore();
      const byte = this.#rest[at] as number;
      if (quoted) {
        if (byte === BACKSLASH) at++;
        else if (byte === QUOTE) quoted = false;
        if (quoted || depth > 0) continue;
        return this.#take(at + 1);
      }
      const ends = byte === COMMA || byte === COLON || SPACE.includes(byte) || CLOSING.includes(byte);
      if (depth === 0 && ends) return this.#take(at);
      if (byte === QUOTE) quoted = true;
      else if (OPENING.includes(byte)) depth++;
      else if (CLOSING.includes(byte) && --depth === 0) return this.#take(at + 1);
    }
  }

  /** The string that begins here, without its quotes and escapes. */
  async *stringPieces(): AsyncGenerator<string, void, void> {
    await this.expect(QUOTE, "a string");
    for (;;) {
      const piece = this.#take(this.#stringLength());
      if (piece !== "") yield piece.includes("\\") ? String(parse(`"${piece}"`)) : piece;
      if (this.#rest[0] === QUOTE) break;
      await this.#readMore();
    }
    this.#rest = this.#rest.subarray(1);
  }

  /** Takes the brace that ends the object; nothing may follow. */
  async end(): Promise<void> {
    this.#rest = this.#rest.subarray(1);
    for (;;) {
      if (this.#rest.some((byte) => !SPACE.includes(byte))) throw invalidJson("there is text behind the object");
      const next = await this.#chunks.next();
      if (next.done) return;
      this.#rest = Buffer.from(next.value);
    }
  }

  /** Of what is here: up to the quote that ends a string, or an escape that is not whole. */
  #stringLength(): number {
    const bytes = this.#rest;
    let at = 0;
    while (at < bytes.length && bytes[at] !== QUOTE) {
      const length = bytes[at] !== BACKSLASH ? 1 : bytes[at + 1] === 0x75 ? 6 : 2;
      if (at + length > bytes.length) break;
      at += length;
    }
    return at;
  }

  #take(bytes: number): string {
    const taken = this.#rest.toString("utf8", 0, bytes);
    this.#rest = this.#rest.subarray(bytes);
    return taken;
  }

  async #readMore(): Promise<void> {
    const next = await this.#chunks.next();
    if (next.done) throw invalidJson("it ended too early");
    this.#rest = Buffer.concat([this.#rest, next.value]);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidJson((error as Error).message);
  }
}

function invalidJson(why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `invalid body: ${why}`);
}
