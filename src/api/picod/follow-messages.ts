import type { Duration } from "@bufbuild/protobuf/wkt";
import { PicodError } from "../../errors/picod-error.js";
import type { AttachRequest, OutputOffsets, StartRequest } from "../../gen/picod/v1/process_pb.js";
import type { FollowOptions } from "../../process/follow.js";
import type { StreamName } from "../../process/managed-process.js";
import type { ProcessRecord } from "../../process/process-record.js";
import { assertValidId } from "./execute-messages.js";

const DEFAULT_KEEPALIVE_MS = 30_000;
const MIN_KEEPALIVE_MS = 1_000;
const DEFAULT_HOLD_MS = 30_000;
const MAX_HOLD_MS = 10 * 60_000;

/** @throws INVALID_ARGUMENT naming the field. */
export function toFollowOptions(request: AttachRequest | StartRequest): FollowOptions {
  return {
    from: request.$typeName === "picod.v1.StartRequest" ? {} : toFrom(request),
    backpressure: request.backpressure,
    keepaliveMs: toKeepaliveMs(request.keepaliveInterval),
    ...toAcknowledging(request),
  };
}

/** What a follower has received. @throws OFFSET_BEYOND_END. */
export function toReceived(record: ProcessRecord, received: OutputOffsets | undefined): Map<StreamName, number> {
  const named = new Map<StreamName, number>();
  for (const [stream, log] of record.logs) {
    const offset = received?.[stream];
    if (offset === undefined) continue;
    if (offset > log.end) {
      const message = `cannot acknowledge output of ${record.id}: ${stream} offset ${offset} is beyond its ${log.end} bytes`;
      throw new PicodError("OFFSET_BEYOND_END", message, { id: record.id });
    }
    named.set(stream, Number(offset));
  }
  return named;
}

/** Within what a client may ask for. */
export function toKeepaliveMs(interval: Duration | undefined): number {
  if (interval === undefined) return DEFAULT_KEEPALIVE_MS;
  return Math.min(DEFAULT_KEEPALIVE_MS, Math.max(MIN_KEEPALIVE_MS, toMs(interval)));
}

function toFrom({ from, fromEnd }: AttachRequest): FollowOptions["from"] {
  if (fromEnd && from !== undefined) throw new PicodError("INVALID_ARGUMENT", "invalid start: give either from or from_end");
  if (fromEnd) return "end";
  const number = (offset: bigint | undefined) => (offset === undefined ? 0 : Number(offset));
  return { stdout: number(from?.stdout), stderr: number(from?.stderr), pty: number(from?.pty) };
}

function toAcknowledging({ followerId, backpressure, hold }: AttachRequest | StartRequest): Pick<FollowOptions, "acknowledging"> {
  if (followerId === "") return {};
  assertValidId(followerId, "follower_id");
  if (!backpressure) throw new PicodError("INVALID_ARGUMENT", "invalid follower_id: it needs backpressure");
  const holdMs = hold === undefined ? DEFAULT_HOLD_MS : toMs(hold);
  if (holdMs < 0 || holdMs > MAX_HOLD_MS) throw new PicodError("INVALID_ARGUMENT", "invalid hold: it is 0 to 10 minutes");
  return { acknowledging: { followerId, holdMs } };
}

function toMs({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}
