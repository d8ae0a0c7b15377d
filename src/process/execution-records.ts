import { hash } from "node:crypto";
import { PicodError } from "../errors/picod-error.js";
import type { ExecuteOptions, ExecuteResult } from "./execute.js";
import { fieldName, sameText } from "./same-request.js";
import { unlessAborted } from "./unless-aborted.js";

/** How long, how many and how much of the results of commands with an id are kept after the end. */
export interface Retention {
  readonly retainMs: number;
  readonly maxRecords: number;
  readonly maxBytes: number;
}

interface ExecutionRecord {
  readonly fields: ReadonlyMap<string, string>;
  readonly result: Promise<ExecuteResult>;
  /** Of the output kept, once it has ended. */
  bytes: number;
  expiry: NodeJS.Timeout | undefined;
}

/** Makes repeating an Execute safe: the same id and the same request have one execution and one result. */
export class ExecutionRecords {
  readonly #retention: Retention;
  /** In the order in which they ended; those that run have no expiry and are never dropped. */
  readonly #records = new Map<string, ExecutionRecord>();
  #endedCount = 0;
  #endedBytes = 0;

  constructor(retention: Retention) {
    this.#retention = retention;
  }

  /**
   * Runs the command, or joins the run that has this id. Aborting gives up waiting; the command runs on, for the retry to find.
   * @throws PROCESS_ID_CONFLICT when the id belongs to another request; whatever `run` throws, which is not kept.
   */
  async once(options: ExecuteOptions, abortSignal: AbortSignal, run: () => Promise<ExecuteResult>): Promise<ExecuteResult> {
    const { id } = options;
    const fields = requestFields(options);
    const known = this.#records.get(id);
    if (known !== undefined) {
      assertSameRequest(id, known.fields, fields);
      return unlessAborted(known.result, abortSignal);
    }
    const record: ExecutionRecord = { fields, result: run(), bytes: 0, expiry: undefined };
    this.#records.set(id, record);
    record.result.then(
      (result) => this.#retain(id, record, result),
      () => this.#records.delete(id),
    );
    return unlessAborted(record.result, abortSignal);
  }

  /** Whether a command with this id runs, or its result is kept. */
  has(id: string): boolean {
    return this.#records.has(id);
  }

  close(): void {
    for (const { expiry } of this.#records.values()) clearTimeout(expiry);
    this.#records.clear();
  }

  #retain(id: string, record: ExecutionRecord, result: ExecuteResult): void {
    record.bytes = result.stdout.utf8.buffer.byteLength + result.stderr.utf8.buffer.byteLength;
    record.expiry = setTimeout(() => this.#drop(id, record), this.#retention.retainMs).unref();
    this.#endedCount++;
    this.#endedBytes += record.bytes;
    this.#records.delete(id);
    this.#records.set(id, record);
    for (const [oldestId, oldest] of this.#records) {
      if (this.#endedCount <= this.#retention.maxRecords && this.#endedBytes <= this.#retention.maxBytes) break;
      if (oldest.expiry !== undefined) this.#drop(oldestId, oldest);
    }
  }

  #drop(id: string, record: ExecutionRecord): void {
    clearTimeout(record.expiry);
    this.#records.delete(id);
    this.#endedCount--;
    this.#endedBytes -= record.bytes;
  }
}

/** What makes two requests the same: the trace they belong to does not, and all that their capability grants does, since it decides about the result. As digests, since input may be large and is kept for long. */
function requestFields(options: ExecuteOptions): Map<string, string> {
  const { id: _id, trace: _trace, ...fields } = options;
  return new Map(Object.entries(fields).map(([name, value]) => [fieldName(name), digest(value)]));
}

function digest(value: unknown): string {
  return hash("sha256", value instanceof Uint8Array ? value : sameText(value));
}

function assertSameRequest(id: string, known: ReadonlyMap<string, string>, asked: ReadonlyMap<string, string>): void {
  for (const [field, value] of asked) {
    if (known.get(field) === value) continue;
    throw new PicodError("PROCESS_ID_CONFLICT", `id ${id} belongs to another request: ${field} differs`, { id, field });
  }
}
