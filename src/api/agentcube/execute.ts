import { Code } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import { toConnectError } from "../../errors/to-connect-error.js";
import type { Access } from "../../filesystem/access.js";
import { locateDirectory } from "../../filesystem/locate-directory.js";
import { makeDirectory } from "../../filesystem/make-directory.js";
import { type ExecuteResult, runToEnd } from "../../process/execute.js";
import type { OutputCollector } from "../../process/output-collector.js";
import { permitTimeout } from "../../process/permit-command.js";
import type { Sandbox } from "../../sandbox.js";
import type { HttpExchange } from "../http-route.js";
import { readJson } from "../json-body.js";
import { DEFAULT_TIMEOUT_MS, toExecuteRequest } from "./execute-request.js";
import { goTime, nowNs } from "./go-time.js";
import type { Workspace } from "./workspace.js";

/** Of each stream; a command that prints more is left its beginning and its end. */
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
/** Clients give up two seconds after the timeout: the answer is there before. */
const MAX_KILL_GRACE_MS = 500;

/** POST /api/execute: runs a program to its end. That it fails is an answer too. */
export async function executeCommand(sandbox: Sandbox, workspace: Workspace, exchange: HttpExchange): Promise<void> {
  const { call, abortSignal, sendJson } = exchange;
  const { argv, timeoutMs: askedMs, workingDirectory, env } = toExecuteRequest(await readJson(exchange, { anyType: true }));
  call.subject = { paths: [], command: argv, user: undefined };
  const timeoutMs = permitTimeout(call.caller?.capability, askedMs, DEFAULT_TIMEOUT_MS);
  const access = workspace.access(call.caller);
  const options = {
    command: { argv },
    cwd: enter(workspace, access, workingDirectory, call.requestId),
    env,
    user: "",
    limits: {},
    trace: call.trace,
    capability: call.caller?.capability,
    stdin: new Uint8Array(),
    timeoutMs,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    id: "",
  };
  const startedAt = nowNs();
  const result = await runToEnd(sandbox.processes, sandbox.users, commandDefaults(sandbox), options, abortSignal);
  call.processId = result.processId;
  sendJson(200, toAnswer(result, timeoutMs, startedAt, nowNs()));
}

/** Commands inherit what the daemon was started with. */
function commandDefaults({ defaults, inheritedEnvironment }: Sandbox) {
  const inherited = { ...defaults.environment.defaults, ...inheritedEnvironment };
  const killGraceMs = Math.min(defaults.killGraceMs, MAX_KILL_GRACE_MS);
  return { ...defaults, killGraceMs, environment: { ...defaults.environment, defaults: inherited } };
}

/** Where a directory of the workspace is for commands; made when it is missing. @throws INVALID_ARGUMENT. */
function enter(workspace: Workspace, access: Access, directory: string, requestId: string): string {
  try {
    const path = workspace.resolve(access, directory === "" ? "/" : directory);
    makeDirectory(access, path);
    return locateDirectory(access, path);
  } catch (error) {
    const { code, rawMessage } = toConnectError(error, requestId);
    if (code === Code.Internal) throw error;
    throw new PicodError("INVALID_ARGUMENT", `Invalid working directory: ${rawMessage}`, {}, { cause: error });
  }
}

function toAnswer(
  { stdout, stderr, end }: ExecuteResult<OutputCollector>,
  timeoutMs: number,
  startedAt: bigint,
  endedAt: bigint,
): object {
  const why = {
    "spawn-failed": end.message,
    "timed-out": `Command timed out after ${timeoutMs / 1000} seconds`,
  }[end.reason as string];
  return {
    stdout: toText(stdout),
    stderr: toText(stderr) + (why ?? ""),
    exit_code: exitCode(end),
    duration: Number(endedAt - startedAt) / 1e9,
    start_time: goTime(startedAt),
    end_time: goTime(endedAt),
  };
}

/** As Go counts: -1 for whatever a signal ended, 1 for what could not be started. */
function exitCode({ reason, signal, exitCode: code }: ExecuteResult["end"]): number {
  if (reason === "spawn-failed") return 1;
  return signal === undefined || reason === "timed-out" ? code : -1;
}

function toText(output: OutputCollector): string {
  return output.toBytes(MAX_OUTPUT_BYTES, (omitted) => `\n[picod: ${omitted} bytes omitted]\n`).toString("utf8");
}
