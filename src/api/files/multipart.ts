import { PicodError } from "../../errors/picod-error.js";

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_END = Buffer.from("\r\n\r\n");

/** The boundary of a multipart/form-data body; undefined for another content type. @throws INVALID_ARGUMENT when it has none. */
export function formBoundary(contentType = "", types = /^multipart\/form-data\b/i): string | undefined {
  if (!types.test(contentType)) return undefined;
  const [, quoted, bare] = /; *boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) throw invalidBody("it has no boundary");
  return boundary;
}

/** One part of a form. */
export interface FormPart {
  /** Undefined when it is no part of a form, or nobody can say. */
  readonly name: string | undefined;
  /** As it was sent: it may be a path. */
  readonly fileName: string | undefined;
  /** What is not taken is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * The parts of a form in their order; each must have been taken before the next is asked for. The body is taken to its end. Pieces of content
 * lie in those of the body, and are valid for as long.
 * @throws INVALID_ARGUMENT when the form is malformed or ends too early.
 */
export async function* formParts(body: AsyncIterable<Uint8Array>, boundary: string): AsyncGenerator<FormPart, void, void> {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const input = new DelimitedInput(body);
  for await (const _ of input.piecesTo(delimiter));
  while ((await input.peek(2)) !== "--") {
    const headers = await input.textTo(HEADERS_END);
    if (!/^[ \t]*(\r\n|$)/.test(headers)) throw invalidBody("there is text behind a boundary");
    const content = contentOf(input, delimiter);
    // Leaving a loop over it must not end it: the rest is skipped below.
    yield { ...dispositionOf(headers), content: { [Symbol.asyncIterator]: () => ({ next: () => content.next() }) } };
    for await (const _ of content);
  }
  await input.skipRest();
}

/** What is written when it ends must not be cut: what follows the delimiter tells that this was all of it. */
async function* contentOf(input: DelimitedInput, delimiter: Buffer): AsyncGenerator<Buffer, void, void> {
  yield* input.piecesTo(delimiter);
  await input.peek(2);
}

/**
 * The content of the first part of a form that is named `file`; other parts are skipped, and so is its file name. The body is taken to
 * its end. @throws INVALID_ARGUMENT when there is no such part, or the form is malformed or ends too early.
 */
export async function* filePart(body: AsyncIterable<Uint8Array>, boundary: string): AsyncIterable<Uint8Array> {
  let found = false;
  for await (const { name, content } of formParts(body, boundary)) {
    if (found || name !== "file") continue;
    found = true;
    yield* content;
  }
  if (!found) throw new PicodError("INVALID_ARGUMENT", 'multipart body is missing the required "file" part');
}

const DISPOSITION = /^content-disposition: *form-data[ \t]*((?:;.*)?)$/im;
const PARAMETER = /;[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\w-]*))[ \t]*/y;
/** What a backslash takes its meaning from; before other letters it is one, as in the paths that some send. */
const ESCAPED = /\\([()<>@,;:\\"/[\]?=])/g;

/** RFC 7578, and `filename*` of RFC 5987, which wins. */
function dispositionOf(headers: string): Pick<FormPart, "name" | "fileName"> {
  const text = DISPOSITION.exec(headers)?.[1] ?? "";
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = 0;
  while (PARAMETER.lastIndex < text.length) {
    const [, name = "", quoted, bare = ""] = PARAMETER.exec(text) ?? [];
    // What does not parse has no name.
    if (name === "") return { name: undefined, fileName: undefined };
    parameters.set(name.toLowerCase(), quoted?.replace(ESCAPED, "$1") ?? bare);
  }
  return { name: parameters.get("name"), fileName: decodeExtended(parameters.get("filename*")) ?? parameters.get("filename") };
}

function decodeExtended(text: string | undefined): string | undefined {
  const [, encoded] = /^utf-8'[^']*'(.*)$/i.exec(text ?? "") ?? [];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Every method throws INVALID_ARGUMENT when the input ends in the middle. */
class DelimitedInput {
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** As if a line ended before the first delimiter too. */
  #rest: Buffer = Buffer.from("\r\n");

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#chunks = body[Symbol.asyncIterator]();
  }

  /** What comes before a delimiter, which is taken too. */
  async *piecesTo(delimiter: Buffer): AsyncGenerator<Buffer, void, void> {
    for (;;) {
      const at = this.#rest.indexOf(delimiter);
      const end = at < 0 ? beginningOf(delimiter, this.#rest) : at;
      const piece = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(at < 0 ? end : at + delimiter.length);
      if (piece.length > 0) yield piece;
      if (at >= 0) return;
      await this.#readMore();
    }
  }

  /** The same for a short text. */
  async textTo(delimiter: Buffer): Promise<string> {
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.piecesTo(delimiter)) {
      bytes += piece.length;
      if (bytes > MAX_HEADER_BYTES) throw invalidBody("the headers of a part are too long");
      pieces.push(Buffer.from(piece));
    }
    return Buffer.concat(pieces).toString("utf8");
  }

  async peek(bytes: number): Promise<string> {
    while (this.#rest.length < bytes) await this.#readMore();
    return this.#rest.toString("latin1", 0, bytes);
  }

  async skipRest(): Promise<void> {
    while (!(await this.#chunks.next()).done);
  }

  async #readMore(): Promise<void> {
    // What it lies in may be used again.
    const rest = Buffer.from(this.#rest);
    const { done, value } = await this.#chunks.next();
    if (done) throw invalidBody("it ended too early");
    this.#rest = rest.length > 0 ? Buffer.concat([rest, value]) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

/** Where what could be the beginning of the delimiter waits for more. */
function beginningOf(delimiter: Buffer, text: Buffer): number {
  const first = delimiter[0] as number;
  const earliest = Math.max(0, text.length - delimiter.length + 1);
  for (let at = text.indexOf(first, earliest); at >= 0; at = text.indexOf(first, at + 1)) {
    if (delimiter.subarray(0, text.length - at).equals(text.subarray(at))) return at;
  }
  return text.length;
}

function invalidBody(why: string): PicodError {
  return new PicodError("INVALID_ARGUMENT", `invalid multipart body: ${why}`);
}
