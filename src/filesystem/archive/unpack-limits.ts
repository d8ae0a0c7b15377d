import { PicodError } from "../../errors/picod-error.js";
import { invalidArchive } from "./invalid-archive.js";

/** So much may come before an entry: PAX records with the largest extended attributes, and long names. */
const MAX_EXTENDED_BYTES = 1024 * 1024;
/** So much of it is not counted as content. */
const FREE_EXTENDED_BYTES = 8 * 1024;

/** What an archive may unpack to. A small one can hold gigabytes. */
export class UnpackLimits {
  readonly #maxBytes: bigint;
  readonly #maxEntries: bigint;
  #counted = 0n;
  #extended = 0;
  /** Entries and bytes of content so far. */
  entries = 0n;
  bytes = 0n;

  constructor(maxBytes: bigint, maxEntries: bigint) {
    this.#maxBytes = maxBytes;
    this.#maxEntries = maxEntries;
  }

  /** Counts what comes before an entry. @throws INVALID_ARCHIVE, ARCHIVE_LIMIT_REACHED. */
  addExtended(entry: string, bytes: number): void {
    this.#extended += bytes;
    if (this.#extended > MAX_EXTENDED_BYTES) {
      throw invalidArchive(entry, `more than ${MAX_EXTENDED_BYTES} bytes of extended headers`);
    }
    if (this.#extended > FREE_EXTENDED_BYTES) this.#count(entry, Math.min(bytes, this.#extended - FREE_EXTENDED_BYTES));
  }

  /** Counts an entry and its content, before any of it is unpacked. @throws ARCHIVE_LIMIT_REACHED. */
  addEntry(entry: string, storedBytes: number): void {
    this.#extended = 0;
    if (this.entries >= this.#maxEntries) throw tooMuch(`more than ${this.#maxEntries} entries`);
    this.#count(entry, storedBytes);
    this.entries++;
    this.bytes += BigInt(storedBytes);
  }

  #count(entry: string, bytes: number): void {
    this.#counted += BigInt(bytes);
    if (this.#counted > this.#maxBytes) throw tooMuch(`more than ${this.#maxBytes} bytes, with ${JSON.stringify(entry)}`);
  }
}

export function tooMuch(what: string): PicodError {
  return new PicodError("ARCHIVE_LIMIT_REACHED", `cannot unpack the archive: it holds ${what}`);
}
