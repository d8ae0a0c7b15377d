/** A start-up or configuration error for a person: exit code 2, no stack. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** A token and where it came from; the source may be logged, the token never. */
export interface Token {
  readonly value: string;
  readonly source: string;
  /** Set when it came from a file, which may be rotated. */
  readonly file?: { readonly path: string; readonly version: string };
}

/** What an HTTP header can carry: RFC 6750's b64token is narrower, but tokens in the field are not. */
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/**
 * Trims the white space around a token, a file's trailing newline above all.
 * @throws ConfigError naming the source when nothing is left, or when no header could carry it.
 */
export function parseToken(text: string, source: string): string {
  const token = text.trim();
  if (token === "") throw new ConfigError(`the access token from ${source} is empty`);
  if (!VISIBLE_ASCII.test(token))
    throw new ConfigError(`the access token from ${source} holds white space or characters that are not ASCII`);
  return token;
}

/** The token of a header such as "Bearer abc"; the scheme's case does not matter (RFC 9110). */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
}
