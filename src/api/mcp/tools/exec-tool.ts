import { type ExecuteResult, runToEnd } from "../../../process/execute.js";
import type { StreamName } from "../../../process/managed-process.js";
import { OutputCollector } from "../../../process/output-collector.js";
import type { Sandbox } from "../../../sandbox.js";
import { limitExceeded } from "../limits.js";
import type { KeptOutputs } from "../sessions/kept-outputs.js";
import { ExecProgress } from "./exec-progress.js";
import { locateWorkdir, WORKDIR } from "./path-input.js";
import { OUTCOME } from "./processes/process-state.js";
import type { ResourceLink, Tool, ToolContext } from "./tool.js";

/** Of each stream, in an answer: what a model can be given. */
const SHOWN_BYTES = 32 * 1024;
/** Of each stream, kept in the session for whoever wants the rest. */
const KEPT_BYTES = 4 * 1024 * 1024;

interface ExecInput {
  readonly command: string;
  readonly timeout_seconds?: number;
  readonly workdir?: string;
}

const OMITTED = {
  type: "object",
  description: "There when the output is not all there: its beginning and its end are.",
  properties: {
    total_bytes: { type: "integer" },
    omitted_bytes: { type: "integer" },
    omitted_lines: { type: "integer" },
    resource: { type: "string", description: "URI of the output for resources/read, while the session lasts." },
  },
  required: ["total_bytes", "omitted_bytes", "omitted_lines", "resource"],
};

/** Runs a command to its end. */
export function createExecTool(sandbox: Sandbox): Tool {
  return {
    name: "sandbox_exec",
    title: "Run a command",
    description:
      "Runs a command line in the shell of the sandbox and waits for its end. A command that fails is an answer too: look at exit_code " +
      "(124: it was ended because its time was up). Of long output the beginning and the end are returned. What the command leaves in the " +
      "background goes on until the session is closed.",
    requires: "process",
    inputSchema: {
      type: "object",
      properties: {
        command: { type: "string", minLength: 1, description: "A line for the shell." },
        timeout_seconds: {
          type: "number",
          exclusiveMinimum: 0,
          description: "Default, and the most: the limit timeout_seconds.",
        },
        workdir: WORKDIR,
      },
      required: ["command"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        exit_code: { type: "integer", description: "128+n after signal n, 124 when the time was up." },
        stdout: { type: "string" },
        stderr: { type: "string" },
        duration_ms: { type: "integer" },
        outcome: OUTCOME,
        note: { type: "string", description: "How it ended, when it did not end by itself." },
        stdout_omitted: OMITTED,
        stderr_omitted: OMITTED,
      },
      required: ["exit_code", "stdout", "stderr", "duration_ms", "outcome"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    subject: ({ command }: ExecInput) => ({ paths: [], command, user: undefined }),
    run: (input: ExecInput, context) => exec(sandbox, input, context),
  };
}

async function exec(sandbox: Sandbox, { command, timeout_seconds: asked, workdir }: ExecInput, context: ToolContext) {
  const { session, call, limits, abortSignal, onProgress } = context;
  const { timeoutMs } = limits;
  if (asked !== undefined && asked * 1000 > timeoutMs) {
    throw limitExceeded("timeout_seconds", timeoutMs / 1000, `cannot run a command for ${asked} s`);
  }
  const options = {
    command: { line: command },
    cwd: locateWorkdir(sandbox, context, workdir),
    env: {},
    user: "",
    limits: {},
    trace: call.trace,
    stdin: new Uint8Array(),
    timeoutMs: asked === undefined ? timeoutMs : asked * 1000,
    maxOutputBytes: KEPT_BYTES,
    id: "",
    capability: call.caller?.capability,
  };
  const shown = { stdout: new OutputCollector(SHOWN_BYTES), stderr: new OutputCollector(SHOWN_BYTES) };
  using progress = new ExecProgress(onProgress, options.timeoutMs);
  const observer = {
    onStarted: session.processes.add.bind(session.processes),
    push(stream: StreamName, chunk: Uint8Array) {
      if (stream !== "pty") shown[stream].push(chunk);
      progress.printed(chunk);
    },
  };
  const result = await runToEnd(sandbox.processes, sandbox.users, sandbox.defaults, options, abortSignal, observer);
  call.processId = result.processId;
  const streams = (["stdout", "stderr"] as const).map((name) => show(name, shown[name], result, session.outputs));
  const { exitCode, durationMs, reason, message } = result.end;
  const structured = {
    exit_code: exitCode,
    ...Object.assign({}, ...streams.map(({ fields }) => fields)),
    duration_ms: Math.round(durationMs),
    outcome: reason.replaceAll("-", "_"),
    ...(message !== "" && { note: message }),
  };
  return { structured, links: streams.flatMap(({ links }) => links) };
}

/** One stream for an answer; what the answer has no room for is kept. */
function show(name: "stdout" | "stderr", shown: OutputCollector, result: ExecuteResult<OutputCollector>, outputs: KeptOutputs) {
  const mark = (bytes: number, lines: number) => `\n[… ${bytes} bytes (${lines} lines) omitted …]\n`;
  const { text, totalBytes, omittedBytes, omittedLines } = shown.collect(mark);
  if (omittedBytes === 0) return { fields: { [name]: text }, links: [] };
  const content = result[name].toBytes(KEPT_BYTES, (bytes) => `\n[… ${bytes} bytes were not kept …]\n`);
  const { uri, name: title } = outputs.keep(result.processId, name, content);
  const omitted = { total_bytes: totalBytes, omitted_bytes: omittedBytes, omitted_lines: omittedLines, resource: uri };
  const description = content.length < totalBytes ? `The beginning and the end of ${totalBytes} bytes.` : "All of it.";
  const link: ResourceLink = { uri, name: title, description, mimeType: "text/plain", size: content.length };
  return { fields: { [name]: text, [`${name}_omitted`]: omitted }, links: [link] };
}
