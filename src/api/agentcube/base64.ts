import { PicodError } from "../../errors/picod-error.js";

const NOT_IN_ALPHABET = /[^A-Za-z0-9+/]/;
const LAST = /^(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?$/;

/** Decodes base64 that arrives in pieces of text; line ends in it are passed over. @throws INVALID_ARGUMENT in the words of the contract. */
export async function* decodeBase64(pieces: AsyncIterable<string>): AsyncGenerator<Buffer, void, void> {
  let waiting = "";
  let decoded = 0;
  for await (const piece of pieces) {
    const text = waiting + piece.replace(/[\r\n]/g, "");
    // Only the last four may hold padding, and which are the last is not known yet.
    const whole = Math.max(0, Math.ceil(text.length / 4) - 1) * 4;
    const bad = text.slice(0, whole).search(NOT_IN_ALPHABET);
    if (bad >= 0) throw corrupt(decoded + bad);
    if (whole > 0) yield Buffer.from(text.slice(0, whole), "base64");
    waiting = text.slice(whole);
    decoded += whole;
  }
  if (!LAST.test(waiting)) throw corrupt(decoded + Math.max(0, waiting.search(/[^A-Za-z0-9+/]|$/)));
  if (waiting !== "") yield Buffer.from(waiting, "base64");
}

function corrupt(at: number): PicodError {
  return new PicodError("INVALID_ARGUMENT", `Invalid base64 content: illegal base64 data at input byte ${at}`);
}
