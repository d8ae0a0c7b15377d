import { close, closeSync, constants, fstat, fstatSync, ftruncate, open, rename, write, writeSync } from "node:fs";
import { promisify } from "node:util";
import { lockAlone } from "../os/lock.js";
import { toJson } from "./audit-line.js";
import type { Head } from "./chain.js";
import { continueChain } from "./continue-chain.js";
import { type Batch, WaitingRecords } from "./waiting-records.js";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
/** A link or a FIFO in its place would send the lines elsewhere, or make the daemon wait. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
const PRIVATE_MODE = 0o600;
const RETRY_MS = 1_000;
/** So long a daemon that ends in this turn waits for what is being written. */
const LAST_WRITE_MS = 250;

const fs = {
  open: promisify(open),
  close: promisify(close),
  fstat: promisify(fstat),
  ftruncate: promisify(ftruncate),
  rename: promisify(rename),
  write: promisify(write),
};

export interface AuditFileOptions {
  readonly path: string;
  /** Beyond it the file becomes `path.1`; 0: never. */
  readonly maxBytes: number;
  /** So many of those are kept. */
  readonly keptFiles: number;
  readonly onWritten: (lines: number) => void;
  readonly onLost: (lines: number) => void;
  readonly onError: (error: unknown) => void;
  /** The file was read for the first time. @param isBroken its last line is not one that a daemon has written. */
  readonly onContinued: (head: Head, isBroken: boolean) => void;
}

/**
 * Appends records to a file, batched, as lines that are chained to each other: whoever appends never waits. While the file cannot be
 * written they wait in memory, for a while. A line is in the file as a whole or not at all.
 */
export class AuditFile {
  readonly #options: AuditFileOptions;
  readonly #waiting = new WaitingRecords();
  #fd: number | undefined;
  #size = 0;
  /** Read from the file once and never again: what somebody else does to the file must show. */
  #head: Head | undefined;
  #inFlight: Batch | undefined;
  #reopen = false;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: AuditFileOptions) {
    this.#options = options;
    this.#wake();
  }

  /** The last line that is in the file; undefined until that is known. */
  get head(): Head | undefined {
    return this.#head;
  }

  /** @param record a JSON object. */
  append(record: string): void {
    if (this.#closed || !this.#waiting.push(record)) this.#options.onLost(1);
    else this.#wake();
  }

  /** The file was moved away: the next line goes to a new one of its name. */
  reopen(): void {
    this.#reopen = true;
    this.#wake();
  }

  /** Resolves when all lines are written, or cannot be. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#writing;
    await this.#write().catch((error) => this.#options.onError(error));
    if (this.#waiting.length > 0) this.#options.onLost(this.#waiting.length);
    if (this.#fd !== undefined) await fs.close(this.#fd);
    this.#fd = undefined;
  }

  /** Writes what waits, for a daemon that ends in this turn. What another thread is writing is waited for a moment, or given up with the rest. */
  flushNow(): void {
    const fd = this.#fd;
    if (fd === undefined || this.#head === undefined) return;
    if (this.#inFlight !== undefined) {
      if (!growsTo(fd, this.#size + this.#inFlight.bytes.length)) return;
      this.#settle(this.#inFlight);
    }
    this.#waiting.tellLost();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.batch(this.#head);
      writeSync(fd, batch.bytes);
      this.#settle(batch);
    }
  }

  #wake(): void {
    if (this.#writing !== undefined || this.#retry !== undefined || this.#closed) return;
    this.#writing = this.#write()
      .catch((error) => {
        this.#options.onError(error);
        this.#retry = setTimeout(() => {
          this.#retry = undefined;
          this.#wake();
        }, RETRY_MS).unref();
      })
      .finally(() => {
        this.#writing = undefined;
        if (this.#waiting.length > 0 || this.#reopen) this.#wake();
      });
  }

  async #write(): Promise<void> {
    // Calls that end in the same turn share a write.
    await new Promise(setImmediate);
    for (;;) {
      const { fd, head } = await this.#open();
      if (this.#waiting.length === 0) this.#waiting.tellLost();
      if (this.#waiting.length === 0) return;
      // While these are written others may come behind them.
      this.#inFlight = this.#waiting.batch(head);
      try {
        await this.#writeWhole(fd, this.#inFlight.bytes);
        this.#settle(this.#inFlight);
      } finally {
        this.#inFlight = undefined;
      }
    }
  }

  #settle({ bytes, lines, head }: Batch): void {
    this.#waiting.drop(lines);
    this.#size += bytes.length;
    this.#head = head;
    this.#options.onWritten(lines);
  }

  async #open(): Promise<{ readonly fd: number; readonly head: Head }> {
    const { path, maxBytes } = this.#options;
    const isFull = this.#fd !== undefined && maxBytes > 0 && this.#size >= maxBytes;
    // A directory that takes no new names must not cost lines: the file grows on.
    if (isFull && !this.#reopen) await this.#rotate().catch((error) => this.#options.onError(error));
    if (this.#fd !== undefined && (this.#reopen || isFull)) {
      closeSync(this.#fd);
      this.#fd = undefined;
    }
    this.#reopen = false;
    if (this.#fd !== undefined && this.#head !== undefined) return { fd: this.#fd, head: this.#head };
    const fd = await fs.open(path, FLAGS, PRIVATE_MODE);
    try {
      // Two daemons that write one file would each break the other's chain.
      if (!lockAlone(fd)) throw new Error(`another process has locked ${path}`);
      const stats = await fs.fstat(fd);
      if (!stats.isFile()) throw Object.assign(new Error(`${path} is not a regular file`), { code: "EINVAL" });
      this.#size = stats.size;
      this.#head ??= await this.#continue(fd);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    this.#fd = fd;
    return { fd, head: this.#head };
  }

  /** After what another daemon has left, and without what it could not finish. */
  async #continue(fd: number): Promise<Head> {
    const { head, torn, isBroken } = await continueChain(this.#options.path);
    this.#options.onContinued(head, isBroken);
    if (torn === undefined) return head;
    try {
      await fs.ftruncate(fd, this.#size - torn.bytes);
      this.#size -= torn.bytes;
    } catch {
      // An append-only file (chattr +a): the cut line stays, as one that is not of the chain.
      this.#size += (await fs.write(fd, Buffer.from("\n"))).bytesWritten;
    }
    this.#waiting.unshift(toJson({ event: "torn_line", ...torn }, new Date()));
    return head;
  }

  /** `path.2` becomes `path.3`, `path.1` becomes `path.2`, and so on; the last of them is replaced. */
  async #rotate(): Promise<void> {
    const { path, keptFiles } = this.#options;
    const names = [path, ...Array.from({ length: keptFiles }, (_, index) => `${path}.${index + 1}`)];
    for (let number = keptFiles; number > 0; number--) {
      await fs.rename(names[number - 1] ?? path, names[number] ?? path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
    }
  }

  /** A disk that is full takes a part: it is taken back, so that no line is cut. */
  async #writeWhole(fd: number, bytes: Buffer): Promise<void> {
    let written = 0;
    try {
      while (written < bytes.length) written += (await fs.write(fd, bytes, written)).bytesWritten;
    } catch (error) {
      if (written > 0) await fs.ftruncate(fd, this.#size);
      throw error;
    }
  }
}

/** Whether a file gets that large while this thread waits for the one that writes. */
function growsTo(fd: number, size: number): boolean {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let waitedMs = 0; waitedMs < LAST_WRITE_MS; waitedMs++) {
    if (fstatSync(fd).size >= size) return true;
    Atomics.wait(sleeper, 0, 0, 1);
  }
  return false;
}
