import { isUtf8 } from "node:buffer";
import { PicodError } from "../../../errors/picod-error.js";

/** How a file's content stands in JSON. */
export type Encoding = "text" | "base64";

export const ENCODING = {
  type: "string",
  enum: ["text", "base64"],
  default: "text",
  description: "text is UTF-8; base64 is for everything else.",
};

const NOT_IN_ALPHABET = /[^A-Za-z0-9+/]/;

/** @throws INVALID_ARGUMENT. */
export function decodeContent(content: string, encoding: Encoding): Buffer {
  if (encoding === "base64") {
    if (isBase64(content)) return Buffer.from(content, "base64");
    throw new PicodError("INVALID_ARGUMENT", "invalid content: it is not base64", { field: "content" });
  }
  if (content.isWellFormed()) return Buffer.from(content);
  throw new PicodError("INVALID_ARGUMENT", "invalid content: it holds half of a surrogate pair", { field: "content" });
}

/** Padding may be left out. */
function isBase64(text: string): boolean {
  const unpadded = text.replace(/={1,2}$/, "");
  if (NOT_IN_ALPHABET.test(unpadded) || unpadded.length % 4 === 1) return false;
  return unpadded.length === text.length || text.length % 4 === 0;
}

/** @throws NOT_TEXT. */
export function encodeContent(path: string, bytes: Buffer, encoding: Encoding): string {
  if (encoding === "base64") return bytes.toString("base64");
  if (isUtf8(bytes)) return bytes.toString("utf8");
  if (isInsideCharacter(bytes)) {
    const message = `cannot read ${path} as text from there: the offset is inside a character; go on at a next_offset`;
    throw new PicodError("NOT_TEXT", message, { path });
  }
  throw new PicodError("NOT_TEXT", `cannot read ${path} as text: it is not UTF-8; ask for it with encoding base64`, { path });
}

/** Whether what begins there would be UTF-8, if it began a little earlier or later. */
function isInsideCharacter(bytes: Buffer): boolean {
  const begin = bytes.subarray(0, 4).findIndex((byte) => (byte & 0xc0) !== 0x80);
  return begin > 0 && isUtf8(bytes.subarray(begin));
}

/** What is left of a piece of text when a last character that is cut off waits for the next piece. */
export function withoutPartialEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
