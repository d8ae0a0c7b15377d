import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callKey } from "../../call.js";
import { PicodError } from "../../errors/picod-error.js";
import { type ExecuteRequest, Outcome_Reason, type ProcessService } from "../../gen/picod/v1/process_pb.js";
import { type ExecuteOptions, type ExecuteResult, execute } from "../../process/execute.js";
import type { CollectedOutput } from "../../process/output-collector.js";
import type { Sandbox } from "../../sandbox.js";

const MAX_OUTPUT_BYTES = 64n * 1024n * 1024n;
const VALID_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** picod.v1.ProcessService: translates and delegates. */
export function createProcessService(sandbox: Sandbox): ServiceImpl<typeof ProcessService> {
  const { processes, users, defaults, executions } = sandbox;
  return {
    async execute(request: ExecuteRequest, context: HandlerContext) {
      const options = toExecuteOptions(request, context.requestHeader.get("traceparent") ?? undefined);
      const run = (abortSignal?: AbortSignal) => execute(processes, users, defaults, options, abortSignal);
      const result = await (options.id === "" ? run(context.signal) : executions.once(options, context.signal, () => run()));
      context.values.get(callKey).processId = result.processId;
      return toExecuteResponse(result);
    },
  };
}

function toExecuteOptions(request: ExecuteRequest, traceparent: string | undefined): ExecuteOptions {
  const { command, argv, timeout, maxOutputBytes, id, env } = request;
  if ((command === "") === (argv.length === 0)) {
    throw new PicodError("INVALID_ARGUMENT", "invalid command: give either command or argv");
  }
  if (timeout !== undefined && !(timeout >= 0 && timeout < Number.POSITIVE_INFINITY)) {
    throw new PicodError("INVALID_ARGUMENT", `invalid timeout: ${timeout}: it is in seconds, and 0 is no limit`);
  }
  if (maxOutputBytes !== undefined && maxOutputBytes > MAX_OUTPUT_BYTES) {
    throw new PicodError("INVALID_ARGUMENT", `invalid max_output_bytes: ${maxOutputBytes}: the limit is ${MAX_OUTPUT_BYTES}`);
  }
  if (id !== "" && !VALID_ID.test(id)) {
    throw new PicodError("INVALID_ARGUMENT", "invalid id: expected 1 to 128 of the characters A-Z a-z 0-9 . _ : -");
  }
  const badName = Object.entries(env).find(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"))?.[0];
  if (badName !== undefined) {
    throw new PicodError(
      "INVALID_ARGUMENT",
      `invalid env: ${JSON.stringify(badName)}: a name is not empty and has no "=", and nothing has a NUL byte`,
    );
  }
  return {
    command: argv.length > 0 ? { argv } : { line: command },
    cwd: request.cwd,
    env,
    user: request.user,
    stdin: request.stdin,
    timeoutMs: timeout === undefined ? undefined : timeout * 1000,
    maxOutputBytes: maxOutputBytes === undefined ? undefined : Number(maxOutputBytes),
    limits: request.limits ?? {},
    id,
    traceparent,
  };
}

const REASON_OF_END: Readonly<Record<ExecuteResult["end"]["reason"], Outcome_Reason>> = {
  exited: Outcome_Reason.EXITED,
  signaled: Outcome_Reason.SIGNALED,
  "timed-out": Outcome_Reason.TIMED_OUT,
  cancelled: Outcome_Reason.CANCELLED,
  "spawn-failed": Outcome_Reason.SPAWN_FAILED,
};

function toExecuteResponse(result: ExecuteResult) {
  const { stdout, stderr, end } = result;
  const { exitCode, forced, survivingProcesses, message } = end;
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    exitCode,
    outcome: { reason: REASON_OF_END[end.reason], exitCode, signal: end.signal ?? "", forced, survivingProcesses, message },
    stdoutSummary: toSummary(stdout),
    stderrSummary: toSummary(stderr),
    duration: toDuration(end.durationMs),
    usage: {
      userTime: toDuration(end.usage.userTimeMs),
      systemTime: toDuration(end.usage.systemTimeMs),
      maxRssBytes: BigInt(end.usage.maxRssBytes),
    },
    processId: result.processId,
  };
}

function toSummary(output: CollectedOutput) {
  const { omittedLines, totalBytes, omittedBytes, utf8Replaced } = output;
  return { totalBytes: BigInt(totalBytes), omittedBytes: BigInt(omittedBytes), omittedLines: BigInt(omittedLines), utf8Replaced };
}

function toDuration(milliseconds: number) {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((milliseconds - seconds * 1000) * 1e6) };
}
