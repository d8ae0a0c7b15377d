import type { Duration } from "@bufbuild/protobuf/wkt";
import { PicodError } from "../../errors/picod-error.js";
import type { StartRequest } from "../../gen/picod/v1/process_pb.js";
import type { Capability } from "../../policy/capability.js";
import type { StartOptions } from "../../process/start.js";
import type { Trace } from "../../trace.js";
import { assertValidId, toTimeoutMs } from "./execute-messages.js";
import { toSize } from "./process-messages.js";

const MAX_TAG_BYTES = 128;
const MAX_LABEL_BYTES = 1024;

/** @throws INVALID_ARGUMENT naming the field. */
export function toStartOptions(request: StartRequest, trace: Trace, capability: Capability | undefined): StartOptions {
  const { command, argv, cwd, env, user, pty, stdin, limits = {}, id, tag, label, login, sessionId } = request;
  if (command !== "" && argv.length > 0) throw new PicodError("INVALID_ARGUMENT", "invalid command: give either command or argv");
  if (command === "" && argv.length === 0 && pty === undefined) {
    throw new PicodError("INVALID_ARGUMENT", "invalid command: give command or argv, or a terminal for the user's shell");
  }
  assertValidId(id);
  assertValidNames(tag, label, sessionId);
  const timeoutMs = toTimeoutMs(request.timeout) ?? 0;
  const size = pty === undefined ? undefined : toSize(pty);
  const names = { id, tag, label, sessionId };
  return { command, argv, cwd, env, user, size, stdin, limits, ...names, login, timeoutMs, trace, capability };
}

/** @throws INVALID_ARGUMENT. */
export function assertValidNames(tag = "", label = "", sessionId = ""): void {
  assertValidName("session_id", sessionId, MAX_TAG_BYTES);
  assertValidName("tag", tag, MAX_TAG_BYTES);
  assertValidName("label", label, MAX_LABEL_BYTES);
}

function assertValidName(field: string, name: string, maxBytes: number): void {
  if (Buffer.byteLength(name) > maxBytes) {
    throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: longer than ${maxBytes} bytes`);
  }
  if (/\p{Cc}/u.test(name)) throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: it holds a control character`);
}

/** @throws INVALID_ARGUMENT. */
export function assertValidWriteId(writeId: string): void {
  if (Buffer.byteLength(writeId) <= MAX_TAG_BYTES) return;
  throw new PicodError("INVALID_ARGUMENT", `invalid write_id: longer than ${MAX_TAG_BYTES} bytes`);
}

/** @throws INVALID_ARGUMENT for a negative one. */
export function toGraceMs(grace: Duration | undefined, defaultMs: number): number {
  if (grace === undefined) return defaultMs;
  const asked = Number(grace.seconds) * 1000 + grace.nanos / 1e6;
  if (asked < 0) throw new PicodError("INVALID_ARGUMENT", "invalid grace: it is negative");
  return Math.min(asked, 2 ** 31 - 1);
}
