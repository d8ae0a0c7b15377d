import { PicodError } from "../errors/picod-error.js";
import type { ProcessEnd, StreamName } from "./managed-process.js";
import type { LosslessReader, ProcessRecord } from "./process-record.js";

/** Of one event: at most the second, and more than the first only of what has got through so far, for followers whose connection keeps breaking. */
const FIRST_CHUNK_BYTES = 64 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;
const MAX_FOLLOWERS = 256;

export type FollowEvent =
  /** First, at once. */
  | { readonly kind: "started" }
  /** Valid until the next event is asked for: the memory is used again. */
  | { readonly kind: "output"; readonly stream: StreamName; readonly offset: number; readonly chunk: Uint8Array }
  /** The bytes from `from` to `to` are no longer kept. */
  | { readonly kind: "trimmed"; readonly stream: StreamName; readonly from: number; readonly to: number }
  | { readonly kind: "keepalive" }
  | { readonly kind: "ended"; readonly end: ProcessEnd };

export interface FollowOptions {
  /** Where to begin; 0 for a stream that is not named. */
  readonly from: Partial<Record<StreamName, number>> | "end";
  /** Make the process wait instead of trimming what this follower has not received. */
  readonly backpressure: boolean;
  /** With back-pressure: aborted when the process is to wait no longer for this follower, which may then miss something. */
  readonly letGo?: AbortSignal;
  /** With back-pressure: who acknowledges the output, and how long the process waits while nobody of that id is connected. */
  readonly acknowledging?: { readonly followerId: string; readonly holdMs: number };
  readonly keepaliveMs: number;
}

/**
 * Follows the output of a process to its end, from any offset, at the reader's own pace.
 * @throws OFFSET_BEYOND_END, FOLLOWER_LIMIT_REACHED at once; the events throw the signal's reason.
 */
export function follow(record: ProcessRecord, options: FollowOptions, abortSignal: AbortSignal): AsyncGenerator<FollowEvent> {
  const offsets = startOffsets(record, options.from);
  if (record.followers >= MAX_FOLLOWERS) {
    throw new PicodError("FOLLOWER_LIMIT_REACHED", `cannot follow ${record.id}: it has ${MAX_FOLLOWERS} followers`, {
      id: record.id,
    });
  }
  return followFrom(record, offsets, options, abortSignal);
}

async function* followFrom(
  record: ProcessRecord,
  offsets: Map<StreamName, number>,
  options: FollowOptions,
  abortSignal: AbortSignal,
): AsyncGenerator<FollowEvent> {
  const hold = options.backpressure ? beginHolding(record, offsets, options.acknowledging) : undefined;
  options.letGo?.addEventListener("abort", () => hold?.end());
  record.followers++;
  const wakeUp = new WakeUp(record, options.keepaliveMs, abortSignal);
  const pieces = new Pieces(record, offsets);
  let mayAskFor = true;
  try {
    yield { kind: "started" };
    for (;;) {
      abortSignal.throwIfAborted();
      // Asked before reading: what is written between the two is then still read.
      const { end } = record;
      let sent = false;
      for (const stream of record.logs.keys()) {
        const event = pieces.next(stream);
        if (event === undefined) continue;
        yield event;
        // What it was told last may still be on its way.
        abortSignal.throwIfAborted();
        sent = true;
      }
      if (sent) {
        if (options.backpressure) record.release();
        mayAskFor = true;
        continue;
      }
      if (end !== undefined) {
        yield { kind: "ended", end };
        return;
      }
      // It has everything and may not know that the process waits for its word.
      if (mayAskFor && hold !== undefined && record.waitsFor(hold.reader)) {
        mayAskFor = false;
        yield { kind: "keepalive" };
        continue;
      }
      // Nothing was awaited since the logs were read, so no news can have been missed.
      if ((await wakeUp.next()) === "keepalive") yield { kind: "keepalive" };
    }
  } finally {
    wakeUp.close();
    hold?.end();
    record.followers--;
  }
}

interface Holding {
  readonly reader: LosslessReader;
  readonly end: () => void;
}

/** Without acknowledgements, what was sent counts as received. @throws FOLLOWER_LIMIT_REACHED. */
function beginHolding(
  record: ProcessRecord,
  offsets: Map<StreamName, number>,
  acknowledging: FollowOptions["acknowledging"],
): Holding | undefined {
  // One that has ended waits for nobody.
  if (record.end !== undefined) return undefined;
  if (acknowledging === undefined) return { reader: { offsets }, end: record.holdFor({ offsets }) };
  const reader = record.holds.connect(acknowledging.followerId, offsets, acknowledging.holdMs);
  return { reader, end: () => reader.disconnect() };
}

function startOffsets(record: ProcessRecord, from: FollowOptions["from"]): Map<StreamName, number> {
  return new Map(
    [...record.logs].map(([stream, log]) => {
      const offset = from === "end" ? log.end : (from[stream] ?? 0);
      if (offset > log.end) {
        const message = `cannot follow ${record.id}: ${stream} offset ${offset} is beyond the ${log.end} bytes that were written`;
        throw new PicodError("OFFSET_BEYOND_END", message, { id: record.id });
      }
      return [stream, offset];
    }),
  );
}

/** What a follower is told of the output, piece by piece, all of them in one buffer: one of its own for each would be garbage as large as the output. */
class Pieces {
  readonly #record: ProcessRecord;
  readonly #offsets: Map<StreamName, number>;
  #buffer = Buffer.alloc(0);
  #sentBytes = 0;

  constructor(record: ProcessRecord, offsets: Map<StreamName, number>) {
    this.#record = record;
    this.#offsets = offsets;
  }

  /** At most one piece of one stream, so that no stream starves another, or what of it is missing. */
  next(stream: StreamName): FollowEvent | undefined {
    const log = this.#record.logs.get(stream);
    const offset = this.#offsets.get(stream) ?? 0;
    if (log === undefined || offset >= log.end) return undefined;
    if (offset < log.keptFrom) {
      this.#offsets.set(stream, log.keptFrom);
      this.#record.tellTrimmed(log.keptFrom - offset);
      return { kind: "trimmed", stream, from: offset, to: log.keptFrom };
    }
    const maxBytes = Math.max(FIRST_CHUNK_BYTES, Math.min(MAX_CHUNK_BYTES, Math.floor(this.#sentBytes / 4)));
    const chunk = this.#room(Math.min(maxBytes, log.end - offset));
    log.readInto(chunk, offset);
    this.#offsets.set(stream, offset + chunk.length);
    this.#sentBytes += chunk.length;
    return { kind: "output", stream, offset, chunk };
  }

  #room(bytes: number): Buffer {
    if (this.#buffer.length < bytes) this.#buffer = Buffer.allocUnsafeSlow(Math.min(MAX_CHUNK_BYTES, bytes * 2));
    return this.#buffer.subarray(0, bytes);
  }
}

/** Waits for news of a record, for the time of a keepalive, or for the caller to go. */
class WakeUp {
  readonly #abortSignal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #stop: () => void;
  readonly #onAbort = () => this.#wake("news");
  #wake: (why: "news" | "keepalive") => void = () => undefined;

  constructor(record: ProcessRecord, keepaliveMs: number, abortSignal: AbortSignal) {
    this.#abortSignal = abortSignal;
    this.#timer = setInterval(() => this.#wake("keepalive"), keepaliveMs);
    this.#stop = record.onChange(() => this.#wake("news"));
    abortSignal.addEventListener("abort", this.#onAbort);
  }

  next(): Promise<"news" | "keepalive"> {
    if (this.#abortSignal.aborted) return Promise.resolve("news");
    this.#timer.refresh();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  close(): void {
    clearInterval(this.#timer);
    this.#stop();
    this.#abortSignal.removeEventListener("abort", this.#onAbort);
  }
}
