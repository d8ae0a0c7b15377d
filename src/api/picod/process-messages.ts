import type { MessageInitShape } from "@bufbuild/protobuf";
import { PicodError } from "../../errors/picod-error.js";
import {
  Outcome_Reason,
  type OutcomeSchema,
  OutputStream,
  Process_State,
  type ProcessEndedSchema,
  type ProcessEventSchema,
  type ProcessSchema,
  type ProcessSelector as ProcessSelectorMessage,
  type PtySize,
} from "../../gen/picod/v1/process_pb.js";
import type { FollowEvent } from "../../process/follow.js";
import type { EndReason, ProcessEnd, StreamName } from "../../process/managed-process.js";
import type { OutputLog } from "../../process/output-log.js";
import type { ProcessRecord } from "../../process/process-record.js";
import type { ProcessSelector } from "../../process/process-registry.js";

const REASON_OF_END: Readonly<Record<EndReason, Outcome_Reason>> = {
  exited: Outcome_Reason.EXITED,
  signaled: Outcome_Reason.SIGNALED,
  "timed-out": Outcome_Reason.TIMED_OUT,
  cancelled: Outcome_Reason.CANCELLED,
  "out-of-memory": Outcome_Reason.OUT_OF_MEMORY,
  "spawn-failed": Outcome_Reason.SPAWN_FAILED,
};

export const STATE_MESSAGES = {
  running: Process_State.RUNNING,
  stopping: Process_State.STOPPING,
  ended: Process_State.ENDED,
} as const;

const STREAM_MESSAGES: Readonly<Record<StreamName, OutputStream>> = {
  stdout: OutputStream.STDOUT,
  stderr: OutputStream.STDERR,
  pty: OutputStream.PTY,
};

/** @throws INVALID_ARGUMENT when it names none. */
export function toSelector(message: ProcessSelectorMessage | undefined): ProcessSelector {
  const selector = message?.selector;
  if (selector?.case === "id" && selector.value !== "") return { id: selector.value };
  if (selector?.case === "tag" && selector.value !== "") return { tag: selector.value };
  throw new PicodError("INVALID_ARGUMENT", "invalid process: give an id or a tag");
}

/** @throws INVALID_ARGUMENT. */
export function toSize(size: PtySize): { cols: number; rows: number } {
  const isValid = (value: number) => value >= 1 && value <= 65_535;
  if (isValid(size.cols) && isValid(size.rows)) return { cols: size.cols, rows: size.rows };
  throw new PicodError("INVALID_ARGUMENT", `invalid terminal size: ${size.cols}×${size.rows}: each is 1 to 65535`);
}

export function toDuration(milliseconds: number) {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((milliseconds - seconds * 1000) * 1e6) };
}

export function toOutcome(end: ProcessEnd): MessageInitShape<typeof OutcomeSchema> {
  const { exitCode, forced, survivingProcesses, message, signal = "" } = end;
  return { reason: REASON_OF_END[end.reason], exitCode, signal, forced, survivingProcesses, message };
}

export function toUsage({ usage }: ProcessEnd) {
  const { userTimeMs, systemTimeMs, maxRssBytes } = usage;
  return { userTime: toDuration(userTimeMs), systemTime: toDuration(systemTimeMs), maxRssBytes: BigInt(maxRssBytes) };
}

export function toProcess(record: ProcessRecord, liveProcesses = 0): MessageInitShape<typeof ProcessSchema> {
  const { id, tag, label, from, runsAs, size, end, endedAtMs, inputBytes } = record;
  const offsets = (offset: (log: OutputLog) => number) => {
    return Object.fromEntries([...record.logs].map(([stream, log]) => [stream, BigInt(offset(log))]));
  };
  return {
    id,
    tag,
    label,
    state: STATE_MESSAGES[record.state],
    pid: record.process?.leaderPid ?? 0,
    command: from.command,
    argv: [...from.argv],
    cwd: runsAs.cwd,
    user: runsAs.userName,
    ...(size === undefined ? {} : { pty: size }),
    startedAt: toTimestamp(record.startedAtMs),
    ...(endedAtMs === undefined ? {} : { endedAt: toTimestamp(endedAtMs) }),
    ...(end === undefined ? {} : { outcome: toOutcome(end), usage: toUsage(end) }),
    written: offsets((log) => log.end),
    keptFrom: offsets((log) => log.keptFrom),
    liveProcesses,
    inputBytes: BigInt(inputBytes),
    sessionId: record.sessionId,
  };
}

export function toEvent(event: FollowEvent, record: ProcessRecord): MessageInitShape<typeof ProcessEventSchema> {
  if (event.kind === "started") return { event: { case: "started", value: { process: toProcess(record) } } };
  if (event.kind === "ended") return { event: { case: "ended", value: toEnded(event.end) } };
  if (event.kind === "keepalive") return { event: { case: "keepalive", value: {} } };
  if (event.kind === "trimmed") {
    const value = { stream: STREAM_MESSAGES[event.stream], from: BigInt(event.from), to: BigInt(event.to) };
    return { event: { case: "trimmed", value } };
  }
  const output = { case: event.stream, value: event.chunk as Uint8Array<ArrayBuffer> };
  return { event: { case: "output", value: { output, offset: BigInt(event.offset) } } };
}

function toEnded(end: ProcessEnd): MessageInitShape<typeof ProcessEndedSchema> {
  return { outcome: toOutcome(end), usage: toUsage(end), duration: toDuration(end.durationMs) };
}

function toTimestamp(milliseconds: number) {
  return { seconds: BigInt(Math.floor(milliseconds / 1000)), nanos: (milliseconds % 1000) * 1_000_000 };
}
