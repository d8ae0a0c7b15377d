import { isUtf8 } from "node:buffer";

/** Stands for the bytes 0x80 to 0xFF, one character each. Private use; MirBSD's OPTU-8 maps them alike. */
const ESCAPED = /[\uef80-\uefff]/;
const ESCAPE_BASE = 0xef00;

/**
 * File names are bytes; inside PicoD, and on the wire, they are text. A byte that is not UTF-8 is a character of U+EF80 to U+EFFF there,
 * and characters of that range which a name really holds are their bytes, so that decoding loses nothing and every name can be
 * encoded back.
 */
export function decodePath(bytes: Buffer): string {
  const text = bytes.toString("utf8");
  return isUtf8(bytes) && !ESCAPED.test(text) ? text : escapeBytes(bytes);
}

/** What a system call takes: the text itself, or, where bytes are escaped in it, those and a final NUL. */
export function encodePath(path: string): string | Buffer {
  return ESCAPED.test(path) ? Buffer.concat([pathBytes(path), Buffer.of(0)]) : path;
}

/** The bytes that a decoded path stands for. */
export function pathBytes(path: string): Buffer {
  if (!ESCAPED.test(path)) return Buffer.from(path);
  const parts = path.split(/([\uef80-\uefff])/);
  return Buffer.concat(parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) & 0xff))));
}

/** Whether a decoded name holds bytes that are not UTF-8. */
export function isRawName(name: string): boolean {
  return ESCAPED.test(name);
}

function escapeBytes(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes[at] as number);
    const character = bytes.subarray(at, at + length);
    if (character.length === length && isUtf8(character) && !ESCAPED.test(character.toString())) {
      text += character.toString();
      at += length;
    } else {
      text += String.fromCharCode(ESCAPE_BASE + (bytes[at] as number));
      at++;
    }
  }
  return text;
}

function sequenceLength(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}
