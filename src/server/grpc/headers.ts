import type { IncomingHttpHeaders } from "node:http2";

/**
 * The headers of a request as handlers see them, looked up where Node has them. A `Headers` of its own would be filled for every call,
 * and hardly any handler looks.
 */
export function toHandlerHeaders(headers: IncomingHttpHeaders): Headers {
  return new RequestHeaders(headers) as unknown as Headers;
}

class RequestHeaders {
  readonly #headers: IncomingHttpHeaders;

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers;
  }

  get(name: string): string | null {
    const key = name.toLowerCase();
    const value = isShown(key) ? this.#headers[key] : undefined;
    return value === undefined ? null : value.toString();
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  forEach(each: (value: string, name: string) => void): void {
    for (const [name, value] of this) each(value, name);
  }

  *[Symbol.iterator](): IterableIterator<[name: string, value: string]> {
    for (const [name, value] of Object.entries(this.#headers)) {
      if (value !== undefined && isShown(name)) yield [name, value.toString()];
    }
  }

  entries(): IterableIterator<[name: string, value: string]> {
    return this[Symbol.iterator]();
  }
}

/** Names that begin with a colon are HTTP/2's own, and nobody behind the gate needs the token. */
function isShown(name: string): boolean {
  return !name.startsWith(":") && name !== "authorization";
}
