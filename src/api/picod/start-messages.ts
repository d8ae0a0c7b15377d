import type { Duration } from "@bufbuild/protobuf/wkt";
import { PicodError } from "../../errors/picod-error.js";
import type { AttachRequest, StartRequest } from "../../gen/picod/v1/process_pb.js";
import type { FollowOptions } from "../../process/follow.js";
import type { StartOptions } from "../../process/start.js";
import { assertValidEnv, assertValidId, toTimeoutMs } from "./execute-messages.js";
import { toSize } from "./process-messages.js";

const DEFAULT_KEEPALIVE_MS = 30_000;
const MIN_KEEPALIVE_MS = 1_000;
const MAX_TAG_BYTES = 128;
const MAX_LABEL_BYTES = 1024;

/** @throws INVALID_ARGUMENT naming the field. */
export function toStartOptions(request: StartRequest, traceparent: string | undefined): StartOptions {
  const { command, argv, cwd, env, user, pty, stdin, limits = {}, id, tag, label, login, sessionId } = request;
  if (command !== "" && argv.length > 0) throw new PicodError("INVALID_ARGUMENT", "invalid command: give either command or argv");
  if (command === "" && argv.length === 0 && pty === undefined) {
    throw new PicodError("INVALID_ARGUMENT", "invalid command: give command or argv, or a terminal for the user's shell");
  }
  assertValidId(id);
  assertValidEnv(env);
  assertValidNames(tag, label, sessionId);
  const timeoutMs = toTimeoutMs(request.timeout) ?? 0;
  const size = pty === undefined ? undefined : toSize(pty);
  return { command, argv, cwd, env, user, size, stdin, limits, id, tag, label, sessionId, login, timeoutMs, traceparent };
}

/** @throws INVALID_ARGUMENT. */
export function assertValidNames(tag = "", label = "", sessionId = ""): void {
  if (Buffer.byteLength(sessionId) > MAX_TAG_BYTES)
    throw new PicodError("INVALID_ARGUMENT", `invalid session_id: longer than ${MAX_TAG_BYTES} bytes`);
  if (Buffer.byteLength(tag) > MAX_TAG_BYTES)
    throw new PicodError("INVALID_ARGUMENT", `invalid tag: longer than ${MAX_TAG_BYTES} bytes`);
  if (Buffer.byteLength(label) > MAX_LABEL_BYTES) {
    throw new PicodError("INVALID_ARGUMENT", `invalid label: longer than ${MAX_LABEL_BYTES} bytes`);
  }
}

export function toFollowOptions(request: AttachRequest | StartRequest): FollowOptions {
  const { backpressure } = request;
  const keepaliveMs = toKeepaliveMs(request.keepaliveInterval);
  if (request.$typeName === "picod.v1.StartRequest") return { from: {}, backpressure, keepaliveMs };
  const { from, fromEnd } = request;
  if (fromEnd && from !== undefined) throw new PicodError("INVALID_ARGUMENT", "invalid start: give either from or from_end");
  if (fromEnd) return { from: "end", backpressure, keepaliveMs };
  const number = (offset: bigint | undefined) => (offset === undefined ? 0 : Number(offset));
  return {
    from: { stdout: number(from?.stdout), stderr: number(from?.stderr), pty: number(from?.pty) },
    backpressure,
    keepaliveMs,
  };
}

/** Within what a client may ask for. */
export function toKeepaliveMs(interval: Duration | undefined): number {
  if (interval === undefined) return DEFAULT_KEEPALIVE_MS;
  const asked = Number(interval.seconds) * 1000 + interval.nanos / 1e6;
  return Math.min(DEFAULT_KEEPALIVE_MS, Math.max(MIN_KEEPALIVE_MS, asked));
}

/** @throws INVALID_ARGUMENT for a negative one. */
export function toGraceMs(grace: Duration | undefined, defaultMs: number): number {
  if (grace === undefined) return defaultMs;
  const asked = Number(grace.seconds) * 1000 + grace.nanos / 1e6;
  if (asked < 0) throw new PicodError("INVALID_ARGUMENT", "invalid grace: it is negative");
  return Math.min(asked, 2 ** 31 - 1);
}
