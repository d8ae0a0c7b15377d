/** Below, a string costs less. */
const MIN_BYTES = 8 * 1024;
const encodedText = Symbol("encoded text");

/** A field of a message, and its text as UTF-8. */
export type EncodedText = readonly [field: string, utf8: Buffer];

/**
 * Gives a message a text that is there as UTF-8. Who reads the field gets a string; who encodes the message can take the bytes of a large
 * one as they are, and no string of some MiB is made to be encoded again.
 */
export function setText<K extends string>(message: Partial<Record<K, string>>, field: K, utf8: Buffer): void {
  if (utf8.length < MIN_BYTES) {
    message[field] = utf8.toString();
    return;
  }
  Object.defineProperty(message, field, { get: () => utf8.toString() });
  Object.defineProperty(message, encodedText, { value: [field, utf8], configurable: true });
}

/** The last large one, if there is any. */
export function encodedTextOf(message: object): EncodedText | undefined {
  return (message as { readonly [encodedText]?: EncodedText })[encodedText];
}
