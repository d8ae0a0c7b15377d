import { close, closeSync, constants, fstat, ftruncate, open, rename, write, writeSync } from "node:fs";
import { promisify } from "node:util";

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
/** A link or a FIFO in its place would send the lines elsewhere, or make the daemon wait. */
const FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
const PRIVATE_MODE = 0o600;
/** Lines that wait for a disk that is full, or slow; what comes after is lost, and counted. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const RETRY_MS = 1_000;

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
}

/**
 * Appends lines to a file, batched: whoever appends never waits. While the file cannot be written they wait in memory, for a while.
 * A line is in the file as a whole or not at all.
 */
export class AuditFile {
  readonly #options: AuditFileOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #fd: number | undefined;
  #size = 0;
  #reopen = false;
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: AuditFileOptions) {
    this.#options = options;
    this.#wake();
  }

  append(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#closed || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#options.onLost(1);
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#wake();
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

  /** Writes what waits, for a daemon that ends in this turn. What is being written at the moment may be there twice. */
  flushNow(): void {
    if (this.#fd !== undefined && this.#waiting.length > 0) writeSync(this.#fd, Buffer.concat(this.#waiting));
    this.#waiting = [];
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
    do {
      await this.#open();
      // While these are written others may come behind them.
      const count = this.#waiting.length;
      if (count === 0) return;
      await this.#writeWhole(Buffer.concat(this.#waiting));
      this.#options.onWritten(count);
      this.#waiting = this.#waiting.slice(count);
      this.#waitingBytes = this.#waiting.reduce((sum, line) => sum + line.length, 0);
    } while (this.#waiting.length > 0);
  }

  async #open(): Promise<void> {
    const { path, maxBytes } = this.#options;
    const isFull = this.#fd !== undefined && maxBytes > 0 && this.#size >= maxBytes;
    if (this.#fd !== undefined && (this.#reopen || isFull)) {
      closeSync(this.#fd);
      this.#fd = undefined;
    }
    // A directory that takes no new names must not cost lines: the file grows on.
    if (isFull && !this.#reopen) await this.#rotate().catch((error) => this.#options.onError(error));
    this.#reopen = false;
    if (this.#fd !== undefined) return;
    const fd = await fs.open(path, FLAGS, PRIVATE_MODE);
    const stats = await fs.fstat(fd);
    if (!stats.isFile()) {
      closeSync(fd);
      throw Object.assign(new Error(`${path} is not a regular file`), { code: "EINVAL" });
    }
    this.#fd = fd;
    this.#size = stats.size;
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
  async #writeWhole(bytes: Buffer): Promise<void> {
    const fd = this.#fd ?? -1;
    let written = 0;
    try {
      while (written < bytes.length) written += (await fs.write(fd, bytes, written)).bytesWritten;
    } catch (error) {
      if (written > 0) await fs.ftruncate(fd, this.#size);
      throw error;
    }
    this.#size += written;
  }
}
