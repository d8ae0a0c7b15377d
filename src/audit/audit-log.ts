import type { Call } from "../call.js";
import type { Logger } from "../logger.js";
import { AuditFile } from "./audit-file.js";
import { type AuditRecord, recordOfCall, toLine } from "./audit-line.js";

/** Lines about calls that were refused, a second. Whoever has no token must not fill the disk, or push the others' lines out. */
const MAX_REFUSED_PER_SECOND = 20;
/** So often the log says that the file cannot be written. */
const COMPLAINT_INTERVAL_MS = 60_000;

export interface AuditOptions {
  readonly path: string;
  readonly maxBytes: number;
  readonly keptFiles: number;
  /** Whether lines hold commands, or their digests alone. */
  readonly commands: boolean;
}

/** What counts the lines. */
export interface AuditCounts {
  auditWritten(lines: number): void;
  auditLost(lines: number): void;
}

/** Who did what, one JSON object a line. Nothing that goes wrong with the file stops a call. */
export class AuditLog {
  readonly #file: AuditFile;
  readonly #showCommands: boolean;
  readonly #logger: Logger;
  #complainedAt = Number.NEGATIVE_INFINITY;
  #refused = { second: 0, count: 0, suppressed: 0 };

  constructor({ path, maxBytes, keptFiles, commands }: AuditOptions, counts: AuditCounts, logger: Logger) {
    this.#showCommands = commands;
    this.#logger = logger;
    const onWritten = (lines: number) => counts.auditWritten(lines);
    const onLost = (lines: number) => counts.auditLost(lines);
    const onError = (error: unknown) => this.#complain(path, error);
    this.#file = new AuditFile({ path, maxBytes, keptFiles, onWritten, onLost, onError });
  }

  /** Something about the daemon itself. */
  note(record: AuditRecord): void {
    this.#file.append(toLine(record, new Date()));
  }

  /** A command that is followed may run for days, and its call with it. */
  callBegun(call: Call): void {
    this.note(recordOfCall("call_begun", call, this.#showCommands));
  }

  callEnded(call: Call): void {
    // Whoever asks for health or the API's description uses nobody's rights.
    if (call.caller?.how === "public") return;
    if (call.caller === undefined && this.#isTooMuch()) return;
    this.note(recordOfCall("call", call, this.#showCommands));
  }

  reopen(): void {
    this.#file.reopen();
  }

  async close(): Promise<void> {
    this.#tellSuppressed();
    await this.#file.close();
  }

  /** For a daemon that ends in this turn. */
  flushNow(): void {
    this.#file.flushNow();
  }

  #isTooMuch(): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#refused.second) {
      this.#tellSuppressed();
      this.#refused = { second, count: 0, suppressed: 0 };
    }
    if (this.#refused.count++ < MAX_REFUSED_PER_SECOND) return false;
    this.#refused.suppressed++;
    return true;
  }

  #tellSuppressed(): void {
    const { suppressed } = this.#refused;
    if (suppressed > 0) this.note({ event: "refused_calls_left_out", count: suppressed });
    this.#refused.suppressed = 0;
  }

  #complain(path: string, error: unknown): void {
    if (performance.now() - this.#complainedAt < COMPLAINT_INTERVAL_MS) return;
    this.#complainedAt = performance.now();
    this.#logger.error({ err: error, path }, "cannot write the audit log");
  }
}
