import { toJson } from "./audit-line.js";
import { chain, type Head } from "./chain.js";

/** Records that wait for a disk that is full, or slow; what comes after is lost, and counted. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Lines that are written at once: each is hashed before, and nobody is answered meanwhile. */
const MAX_BATCH_BYTES = 256 * 1024;

/** Lines that are to be written at once. */
export interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
  /** Its last line. */
  readonly head: Head;
}

/** Records that are not in the file yet, in order, each a JSON object. */
export class WaitingRecords {
  readonly #records: string[] = [];
  #bytes = 0;
  /** Since the last that was taken. */
  #lost = 0;

  get length(): number {
    return this.#records.length;
  }

  /** Returns false when there is no room: it is lost. */
  push(record: string): boolean {
    const length = Buffer.byteLength(record);
    if (this.#bytes + length > MAX_WAITING_BYTES) {
      this.#lost++;
      return false;
    }
    this.tellLost();
    this.#records.push(record);
    this.#bytes += length;
    return true;
  }

  /** In front of all others. */
  unshift(record: string): void {
    this.#records.unshift(record);
    this.#bytes += Buffer.byteLength(record);
  }

  /** A gap is a record like any other, behind what it came after. */
  tellLost(): void {
    if (this.#lost === 0) return;
    const record = toJson({ event: "lines_lost", count: this.#lost }, new Date());
    this.#lost = 0;
    this.#records.push(record);
    this.#bytes += record.length;
  }

  /** The next lines. They are chained only now: in the order of the file, and without those that were lost. They stay until `drop`. */
  batch(after: Head): Batch {
    let head = after;
    let length = 0;
    const lines: Buffer[] = [];
    for (const record of this.#records) {
      if (length >= MAX_BATCH_BYTES) break;
      const next = chain(record, head);
      head = next.head;
      const line = Buffer.from(next.line);
      lines.push(line);
      length += line.length;
    }
    return { bytes: Buffer.concat(lines), lines: lines.length, head };
  }

  /** So many are in the file. */
  drop(lines: number): void {
    for (const record of this.#records.splice(0, lines)) this.#bytes -= Buffer.byteLength(record);
  }
}
