import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ProcessEventSchema } from "../../gen/envd/process/process_pb.js";
import type { ProcessEnd, StreamName } from "../../process/managed-process.js";
import { describeSignal } from "./signal-words.js";

type Event = MessageInitShape<typeof ProcessEventSchema>;

const MAX_CHUNK_BYTES: Readonly<Record<StreamName, number>> = { stdout: 32 * 1024, stderr: 32 * 1024, pty: 16 * 1024 };

export function toStart(pid: number): Event {
  return { event: { case: "start", value: { pid } } };
}

export const KEEPALIVE: Event = { event: { case: "keepalive", value: {} } };

export function* toData(stream: StreamName, chunk: Uint8Array): Generator<Event> {
  const size = MAX_CHUNK_BYTES[stream];
  for (let at = 0; at < chunk.length; at += size) {
    const value = chunk.subarray(at, at + size) as Uint8Array<ArrayBuffer>;
    yield { event: { case: "data", value: { output: { case: stream, value } } } };
  }
}

/** Whether there is an error matters to clients, an empty one included. */
export function toEnd({ signal, exitCode }: ProcessEnd): Event {
  const status = signal === undefined ? `exit status ${exitCode}` : `signal: ${describeSignal(signal)}`;
  const failed = signal !== undefined || exitCode !== 0;
  const value = { exitCode: signal === undefined ? exitCode : -1, exited: signal === undefined, status };
  return { event: { case: "end", value: failed ? { ...value, error: status } : value } };
}
