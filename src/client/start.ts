import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import {
  OutputStream,
  type ProcessEnded,
  type ProcessEvent,
  type ProcessService,
  type StartRequestSchema,
} from "../gen/picod/v1/process_pb.js";
import { Acknowledger, type Offsets } from "./acknowledger.js";
import { insistently } from "./insistently.js";
import { Once } from "./once.js";
import { Retries } from "./retries.js";
import type { Connection } from "./transport.js";
import { KEEPALIVE_SECONDS, unlessSilent } from "./unless-silent.js";

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
   * Resolves when the daemon has it, once, through broken connections and at the pace of the process; several go in order. Others
   * may write to the process meanwhile; pieces of up to 256 KiB stay whole.
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

const WRITE_BYTES = 256 * 1024;

const STREAM_NAMES = { [OutputStream.STDOUT]: "stdout", [OutputStream.STDERR]: "stderr", [OutputStream.PTY]: "pty" } as const;

/** Resolves when the process runs. @throws ConnectError when it cannot be started. */
export async function startProcess(
  client: Client<typeof ProcessService>,
  connection: Connection,
  request: Omit<MessageInitShape<typeof StartRequestSchema>, "$typeName">,
): Promise<StartedProcess> {
  // With an id of ours a Start whose answer was lost finds the process that it has started.
  const id = request.id || randomUUID();
  const process = { selector: { case: "id" as const, value: id } };
  const offsets: Offsets = { stdout: 0n, stderr: 0n, pty: 0n };
  const keepaliveInterval = { seconds: BigInt(KEEPALIVE_SECONDS) };
  const { closed } = connection;
  // The process waits for what this reader has not taken, also while the connection is broken.
  const { backpressure = false, hold } = request;
  const followerId = request.followerId || (backpressure ? randomUUID() : "");
  const following = { followerId, backpressure, keepaliveInterval, ...(hold === undefined ? {} : { hold }) };
  const acknowledger = backpressure
    ? new Acknowledger((received) => client.acknowledgeOutput({ process, followerId, received }))
    : undefined;
  let started = false;
  let end: ProcessEnded | undefined;
  let writing = Promise.resolve();

  async function* events(once: Once, signal: AbortSignal): AsyncGenerator<{ event?: ProcessEvent | undefined }> {
    if (started) yield* client.attach({ process, from: offsets, ...following }, { signal });
    else yield* client.start({ ...request, id, ...following }, { signal, headers: await once.headers() });
  }

  /** Goes on where an iteration before it was left. */
  async function* follow(): AsyncGenerator<ProcessChunk | "started"> {
    const once = new Once(connection);
    const retries = new Retries(closed);
    while (end === undefined) {
      const leave = new AbortController();
      try {
        for await (const { event } of unlessSilent(events(once, leave.signal), leave)) {
          retries.succeeded();
          if (event?.event.case === "started" && !started) {
            started = true;
            yield "started";
          }
          if (event?.event.case === "ended") end = event.event.value;
          if (event?.event.case === "keepalive") acknowledger?.asked();
          const chunk = toChunk(event, offsets);
          if (chunk === undefined) continue;
          yield chunk;
          // Who comes back for the next one has taken it.
          acknowledger?.took("data" in chunk ? chunk.data.length : 0, offsets);
        }
        if (end === undefined) throw new ConnectError("the stream ended without the end of the process", Code.Unavailable);
      } catch (error) {
        await (started ? retries : once).after(error);
      } finally {
        leave.abort();
      }
    }
  }

  async function send(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += WRITE_BYTES) {
      const piece = data.subarray(at, at + WRITE_BYTES) as Uint8Array<ArrayBuffer>;
      await sendOnce({ process, data: piece, writeId: randomUUID() });
    }
  }

  async function sendOnce(piece: Parameters<typeof client.sendInput>[0]): Promise<void> {
    for (const once = new Once(connection); ; ) {
      try {
        await client.sendInput(piece, { headers: await once.headers() });
        return;
      } catch (error) {
        await once.after(error, Code.ResourceExhausted);
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
      await insistently(connection, undefined, () => client.closeInput({ process }));
    },
    async resize(cols, rows) {
      await insistently(connection, undefined, () => client.resizePty({ process, size: { cols, rows } }));
    },
    async signal(signal) {
      await client.sendSignal({ process, signal });
    },
    async stop() {
      await insistently(connection, undefined, () => client.stopProcess({ process }));
    },
  };
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
