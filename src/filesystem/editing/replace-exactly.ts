import { PicodError } from "../../errors/picod-error.js";

/** A passage of a text, and what is to stand there instead. */
export interface Replacement {
  readonly oldText: string;
  readonly newText: string;
  /** Wherever it stands; otherwise it must stand in one place. */
  readonly everywhere: boolean;
}

export interface Replaced {
  readonly text: string;
  readonly replacements: number;
}

/** So many places are named to somebody who has to choose one. */
const NAMED_LINES = 5;

/**
 * Replaces a passage that is given to the letter. In a text whose lines all end in CRLF, a passage with lines that end in LF alone stands for
 * the same with CRLF. @throws INVALID_ARGUMENT, TEXT_NOT_FOUND, TEXT_NOT_UNIQUE; `subject` is for their messages.
 */
export function replaceExactly(subject: string, text: string, replacement: Replacement): Replaced {
  assertUsable(subject, replacement);
  const { oldText, newText } = inLineEndsOf(text, replacement);
  // Passages that overlap are two places to choose from, but cannot both be replaced.
  const step = replacement.everywhere ? oldText.length : 1;
  const places: number[] = [];
  for (let at = text.indexOf(oldText); at !== -1; at = text.indexOf(oldText, at + step)) places.push(at);
  if (places.length === 0) throw notFound(subject, text, oldText);
  if (places.length > 1 && !replacement.everywhere) throw notUnique(subject, text, places);
  const parts: string[] = [];
  let done = 0;
  for (const place of places) {
    parts.push(text.slice(done, place), newText);
    done = place + oldText.length;
  }
  parts.push(text.slice(done));
  return { text: parts.join(""), replacements: places.length };
}

function assertUsable(subject: string, { oldText, newText }: Replacement): void {
  const why =
    oldText === ""
      ? "the text to replace is empty"
      : oldText === newText
        ? "the new text is the old one"
        : oldText.isWellFormed() && newText.isWellFormed()
          ? undefined
          : "the text holds half of a surrogate pair";
  if (why !== undefined) throw new PicodError("INVALID_ARGUMENT", `cannot edit ${subject}: ${why}`);
}

function inLineEndsOf(text: string, { oldText, newText }: Replacement): Pick<Replacement, "oldText" | "newText"> {
  const isCrlf = text.includes("\r\n") && !/(?<!\r)\n/.test(text);
  if (!isCrlf || oldText.includes("\r") || newText.includes("\r")) return { oldText, newText };
  return { oldText: oldText.replaceAll("\n", "\r\n"), newText: newText.replaceAll("\n", "\r\n") };
}

function notFound(subject: string, text: string, oldText: string): PicodError {
  const sameButSpace = text === "" ? -1 : withoutSpace(text).indexOf(withoutSpace(oldText));
  const hint =
    text === "" ? "the file is empty" : sameButSpace === -1 ? "" : "there is one that differs only in white space or line ends";
  const message = `cannot edit ${subject}: the text to replace occurs 0 times${hint && `; ${hint}`}`;
  return new PicodError("TEXT_NOT_FOUND", message, { path: subject, occurrences: "0" });
}

const withoutSpace = (text: string) => text.replaceAll(/\s+/g, "");

function notUnique(subject: string, text: string, places: readonly number[]): PicodError {
  const occurrences = String(places.length);
  const lines = places.slice(0, NAMED_LINES).map((place) => lineOf(text, place));
  const where = `on line${lines.length > 1 ? "s" : ""} ${lines.join(", ")}${places.length > NAMED_LINES ? " and further ones" : ""}`;
  const message = `cannot edit ${subject}: the text to replace occurs ${occurrences} times, ${where}: give more of what is around it, or replace all`;
  return new PicodError("TEXT_NOT_UNIQUE", message, { path: subject, occurrences });
}

/** Counted from 1. */
function lineOf(text: string, place: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < place; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
