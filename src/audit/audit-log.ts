import type { Call } from "../call.js";
import type { Logger } from "../logger.js";
import { RefusalLimit } from "../refusal-limit.js";
import { AuditFile } from "./audit-file.js";
import { type AuditRecord, recordOfCall, toJson } from "./audit-line.js";
import type { Head } from "./chain.js";

/** So often the log says that the file cannot be written. */
const COMPLAINT_INTERVAL_MS = 60_000;
/** So often, while lines are written, the log says what the last one was. */
const HEAD_INTERVAL_MS = 60_000;

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
  #headTimer: NodeJS.Timeout | undefined;
  #complainedAt = Number.NEGATIVE_INFINITY;
  /** Of calls without a valid token. */
  readonly #refused = new RefusalLimit((count) => this.note({ event: "refused_calls_left_out", count }));

  constructor({ path, maxBytes, keptFiles, commands }: AuditOptions, counts: AuditCounts, logger: Logger) {
    this.#showCommands = commands;
    this.#logger = logger;
    const onWritten = (lines: number) => {
      counts.auditWritten(lines);
      this.#headTimer ??= setTimeout(() => this.#tellHead(), HEAD_INTERVAL_MS).unref();
    };
    const onLost = (lines: number) => counts.auditLost(lines);
    const onError = (error: unknown) => this.#complain(path, error);
    const onContinued = (head: Head, isBroken: boolean) => {
      if (isBroken) logger.error({ path }, "the audit log does not end with a line that a daemon has written");
      this.#tellHead(head);
    };
    this.#file = new AuditFile({ path, maxBytes, keptFiles, onWritten, onLost, onError, onContinued });
  }

  /** Something about the daemon itself. */
  note(record: AuditRecord): void {
    this.#file.append(toJson(record, new Date()));
  }

  /** A command that is followed may run for days, and its call with it. */
  callBegun(call: Call): void {
    this.note(recordOfCall("call_begun", call, this.#showCommands));
  }

  callEnded(call: Call): void {
    // Whoever asks for health or the API's description uses nobody's rights.
    if (call.caller?.how === "public") return;
    if (call.caller === undefined && this.#refused.isTooMuch()) return;
    this.note(recordOfCall("call", call, this.#showCommands));
  }

  /** Opens the file anew. */
  reopen(): void {
    this.#tellHead();
    this.#file.reopen();
  }

  async close(): Promise<void> {
    this.#refused.tellLeftOut();
    await this.#file.close();
    this.#tellHead();
  }

  /** For a daemon that ends in this turn. */
  flushNow(): void {
    this.#file.flushNow();
  }

  /** To where whoever changes the file does not reach: lines up to this one can then neither be cut off nor be made anew. */
  #tellHead(head = this.#file.head): void {
    clearTimeout(this.#headTimer);
    this.#headTimer = undefined;
    if (head !== undefined) this.#logger.info({ seq: head.seq, hash: head.hash }, "audit log head");
  }

  #complain(path: string, error: unknown): void {
    if (performance.now() - this.#complainedAt < COMPLAINT_INTERVAL_MS) return;
    this.#complainedAt = performance.now();
    this.#logger.error({ err: error, path }, "cannot write the audit log");
  }
}
