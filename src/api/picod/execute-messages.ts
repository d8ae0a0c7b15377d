import { setText } from "../../encoded-text.js";
import { PicodError } from "../../errors/picod-error.js";
import type { ExecuteRequest } from "../../gen/picod/v1/process_pb.js";
import type { Capability } from "../../policy/capability.js";
import type { ExecuteOptions, ExecuteResult } from "../../process/execute.js";
import type { CollectedOutput } from "../../process/output-collector.js";
import type { Trace } from "../../trace.js";
import { toDuration, toOutcome, toUsage } from "./process-messages.js";

const MAX_OUTPUT_BYTES = 64n * 1024n * 1024n;
const VALID_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** @throws INVALID_ARGUMENT naming the field. */
export function toExecuteOptions(request: ExecuteRequest, trace: Trace, capability: Capability | undefined): ExecuteOptions {
  const { command, argv, maxOutputBytes, id, env, cwd, user, stdin, limits = {} } = request;
  if ((command === "") === (argv.length === 0)) {
    throw new PicodError("INVALID_ARGUMENT", "invalid command: give either command or argv");
  }
  if (maxOutputBytes !== undefined && maxOutputBytes > MAX_OUTPUT_BYTES) {
    throw new PicodError("INVALID_ARGUMENT", `invalid max_output_bytes: ${maxOutputBytes}: the limit is ${MAX_OUTPUT_BYTES}`);
  }
  assertValidId(id);
  return {
    command: argv.length > 0 ? { argv } : { line: command },
    cwd,
    env,
    user,
    stdin,
    timeoutMs: toTimeoutMs(request.timeout),
    maxOutputBytes: maxOutputBytes === undefined ? undefined : Number(maxOutputBytes),
    limits,
    id,
    trace,
    capability,
  };
}

export function toExecuteResponse(result: ExecuteResult) {
  const { stdout, stderr, end, processId } = result;
  const response = {
    stdout: "",
    stderr: "",
    exitCode: end.exitCode,
    outcome: toOutcome(end),
    stdoutSummary: toSummary(stdout),
    stderrSummary: toSummary(stderr),
    duration: toDuration(end.durationMs),
    usage: toUsage(end),
    processId,
  };
  setText(response, "stderr", stderr.utf8);
  setText(response, "stdout", stdout.utf8);
  return response;
}

/** Seconds, as they are in requests. @throws INVALID_ARGUMENT. */
export function toTimeoutMs(seconds: number | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  if (seconds === 0) return 0;
  // A float of 32 bits has not the number that was written; what is left of it must not become "no limit".
  if (seconds > 0 && seconds < Number.POSITIVE_INFINITY) return Math.max(1, Math.round(seconds * 1000));
  throw new PicodError("INVALID_ARGUMENT", `invalid timeout: ${seconds}: it is in seconds, and 0 is no limit`);
}

/** @throws INVALID_ARGUMENT. Empty is valid: the daemon makes one. */
export function assertValidId(id: string, field = "id"): void {
  if (id === "" || VALID_ID.test(id)) return;
  throw new PicodError("INVALID_ARGUMENT", `invalid ${field}: expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -`);
}

function toSummary(output: CollectedOutput) {
  const { omittedLines, totalBytes, omittedBytes, utf8Replaced } = output;
  return { totalBytes: BigInt(totalBytes), omittedBytes: BigInt(omittedBytes), omittedLines: BigInt(omittedLines), utf8Replaced };
}
