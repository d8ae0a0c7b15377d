import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import {
  OutputStream,
  type ProcessEnded,
  type ProcessEvent,
  type ProcessService,
  type StartRequestSchema,
} from "../gen/picod/v1/process_pb.js";

/** A piece of output, or the news that a piece is missing. */
export type ProcessChunk =
  | { readonly stream: "stdout" | "stderr" | "pty"; readonly offset: bigint; readonly data: Uint8Array }
  | { readonly stream: "stdout" | "stderr" | "pty"; readonly trimmed: { readonly from: bigint; readonly to: bigint } };

/**
 * A process of the sandbox. Iterating gives its output once, from the first byte to the last, through broken connections; left early
 * and begun again, it goes on where it was. One iteration, or `wait`, at a time.
 */
export interface StartedProcess extends AsyncIterable<ProcessChunk> {
  readonly id: string;
  /** Takes and drops the output that is left. @throws ConnectError when it could not be started or followed. */
  wait(): Promise<ProcessEnded>;
  /**
   * Resolves when the daemon has it, through broken connections and at the pace of the process; several go in order. Nobody else
   * may write to the process meanwhile: that the daemon has it already is known by how much it was sent.
   */
  write(data: string | Uint8Array): Promise<void>;
  /** After what was written. */
  closeInput(): Promise<void>;
  resize(cols: number, rows: number): Promise<void>;
  /** Not repeated when the connection breaks: the process may have got it. */
  signal(signal: string): Promise<void>;
  /** TERM, grace, KILL, for all that descends from it. */
  stop(): Promise<void>;
}

/** How often a call is begun again without a sign of life in between. */
const ATTEMPTS = 10;
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 2_000;
/** Twice what the daemon is asked for: silence beyond it is a dead connection. */
const KEEPALIVE_SECONDS = 10;
const SILENCE_MS = 2 * KEEPALIVE_SECONDS * 1000 + 5_000;
const WRITE_BYTES = 256 * 1024;

const BROKEN: readonly Code[] = [Code.Unavailable, Code.Canceled, Code.Aborted, Code.Unknown, Code.Internal];

const STREAM_NAMES = { [OutputStream.STDOUT]: "stdout", [OutputStream.STDERR]: "stderr", [OutputStream.PTY]: "pty" } as const;

type Offsets = Record<"stdout" | "stderr" | "pty", bigint>;

/** Waits before a call is begun again, longer each time; throws what cannot be helped by that. */
class Retries {
  readonly #closed: AbortSignal;
  #failures = 0;

  constructor(closed: AbortSignal) {
    this.#closed = closed;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  async after(error: unknown, alsoFor?: Code): Promise<void> {
    const { code } = ConnectError.from(error);
    // A process that reads slowly is waited for as long as it takes.
    if (code !== alsoFor && (!BROKEN.includes(code) || ++this.#failures > ATTEMPTS)) throw error;
    if (!this.#closed.aborted) {
      const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures);
      await sleep(delayMs, undefined, { signal: this.#closed }).catch(() => undefined);
    }
    if (this.#closed.aborted) throw new ConnectError("the client was closed", Code.Canceled);
  }
}

/** Resolves when the process runs. @throws ConnectError when it cannot be started. */
export async function startProcess(
  client: Client<typeof ProcessService>,
  request: Omit<MessageInitShape<typeof StartRequestSchema>, "$typeName">,
  closed: AbortSignal,
): Promise<StartedProcess> {
  // With an id of ours a Start whose answer was lost finds the process that it has started.
  const id = request.id || randomUUID();
  const process = { selector: { case: "id" as const, value: id } };
  const offsets: Offsets = { stdout: 0n, stderr: 0n, pty: 0n };
  const keepaliveInterval = { seconds: BigInt(KEEPALIVE_SECONDS) };
  let inputBytes: bigint | undefined;
  let end: ProcessEnded | undefined;
  let writing = Promise.resolve();

  function events(abortSignal: AbortSignal): AsyncIterable<{ event?: ProcessEvent | undefined }> {
    const options = { signal: abortSignal };
    if (inputBytes === undefined) return client.start({ ...request, id, keepaliveInterval }, options);
    return client.attach({ process, from: offsets, backpressure: request.backpressure ?? false, keepaliveInterval }, options);
  }

  /** Goes on where an iteration before it was left. */
  async function* follow(): AsyncGenerator<ProcessChunk | "started"> {
    const retries = new Retries(closed);
    while (end === undefined) {
      const leave = new AbortController();
      try {
        for await (const { event } of unlessSilent(events(leave.signal), leave)) {
          retries.succeeded();
          if (event?.event.case === "started" && inputBytes === undefined) {
            // It may have been started, and typed at, before.
            inputBytes = event.event.value.process?.inputBytes ?? 0n;
            yield "started";
          }
          if (event?.event.case === "ended") end = event.event.value;
          const chunk = toChunk(event, offsets);
          if (chunk !== undefined) yield chunk;
        }
        if (end === undefined) throw new ConnectError("the stream ended without the end of the process", Code.Unavailable);
      } catch (error) {
        await retries.after(error);
      } finally {
        leave.abort();
      }
    }
  }

  async function send(data: Uint8Array): Promise<void> {
    const retries = new Retries(closed);
    for (let at = 0; at < data.length; ) {
      const piece = data.subarray(at, at + WRITE_BYTES) as Uint8Array<ArrayBuffer>;
      const offset = inputBytes ?? 0n;
      try {
        await client.sendInput({ process, data: piece, offset });
        retries.succeeded();
        at += piece.length;
        inputBytes = offset + BigInt(piece.length);
      } catch (error) {
        await retries.after(error, Code.ResourceExhausted);
      }
    }
  }

  /** For calls that are safe to repeat. */
  async function insistently(call: () => Promise<unknown>): Promise<void> {
    for (const retries = new Retries(closed); ; ) {
      try {
        await call();
        return;
      } catch (error) {
        await retries.after(error);
      }
    }
  }

  let first: AsyncGenerator<ProcessChunk | "started"> | undefined = follow();
  await first.next();

  async function* chunks(): AsyncGenerator<ProcessChunk> {
    const following = first ?? follow();
    first = undefined;
    for await (const chunk of following) if (chunk !== "started") yield chunk;
  }

  return {
    id,
    [Symbol.asyncIterator]: chunks,
    async wait() {
      for await (const _ of chunks());
      // An iteration that does not throw ends with it.
      return end as ProcessEnded;
    },
    write(data) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      const written = writing.then(() => send(bytes));
      writing = written.catch(() => undefined);
      return written;
    },
    async closeInput() {
      await writing;
      await insistently(() => client.closeInput({ process }));
    },
    resize: (cols, rows) => insistently(() => client.resizePty({ process, size: { cols, rows } })),
    async signal(signal) {
      await client.sendSignal({ process, signal });
    },
    stop: () => insistently(() => client.stopProcess({ process })),
  };
}

/** Aborts when nothing arrives for longer than keepalives may take; how long the taker is busy does not count. */
async function* unlessSilent<T>(messages: AsyncIterable<T>, abort: AbortController): AsyncGenerator<T> {
  const iterator = messages[Symbol.asyncIterator]();
  for (;;) {
    const timer = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const next = await iterator.next();
      if (next.done) return;
      clearTimeout(timer);
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Moves the offsets along. */
function toChunk(event: ProcessEvent | undefined, offsets: Offsets): ProcessChunk | undefined {
  if (event?.event.case === "output") {
    const { output, offset } = event.event.value;
    if (output.case === undefined) return undefined;
    offsets[output.case] = offset + BigInt(output.value.length);
    return { stream: output.case, offset, data: output.value };
  }
  if (event?.event.case === "trimmed") {
    const { stream, from, to } = event.event.value;
    if (stream === OutputStream.UNSPECIFIED) return undefined;
    offsets[STREAM_NAMES[stream]] = to;
    return { stream: STREAM_NAMES[stream], trimmed: { from, to } };
  }
  return undefined;
}
