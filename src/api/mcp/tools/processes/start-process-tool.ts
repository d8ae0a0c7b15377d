import { start } from "../../../../process/start.js";
import type { Sandbox } from "../../../../sandbox.js";
import { locateWorkdir, WORKDIR } from "../path-input.js";
import type { Tool, ToolContext } from "../tool.js";
import { STATE_PROPERTIES, stateOf } from "./process-state.js";
import type { SessionProcesses } from "./session-processes.js";

interface StartInput {
  readonly command: string;
  readonly workdir?: string;
  readonly timeout_seconds?: number;
  readonly pty?: { readonly cols: number; readonly rows: number };
}

const SIZE = { type: "integer", minimum: 1, maximum: 65_535 };

/** Starts a process that runs on after the call. */
export function createStartProcessTool(sandbox: Sandbox, processes: SessionProcesses): Tool {
  return {
    name: "sandbox_process_start",
    title: "Start a background process",
    description:
      "Starts a command line in the shell of the sandbox and returns at once with a process_id: for servers, watchers, and what is typed at. " +
      "Read its output with sandbox_process_output. It ends when the session is closed.",
    requires: "process",
    inputSchema: {
      type: "object",
      properties: {
        command: { type: "string", minLength: 1, description: "A line for the shell." },
        workdir: WORKDIR,
        timeout_seconds: {
          type: "number",
          exclusiveMinimum: 0,
          description: "Ends it after so long; default: the session's end.",
        },
        pty: {
          type: "object",
          description: "Give it a terminal of that size; all output is then stdout.",
          properties: { cols: SIZE, rows: SIZE },
          required: ["cols", "rows"],
          additionalProperties: false,
        },
      },
      required: ["command"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: { ...STATE_PROPERTIES, pid: { type: "integer" } },
      required: ["process_id", "status"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    subject: ({ command }: StartInput) => ({ paths: [], command, user: undefined }),
    run: (input: StartInput, context) => startProcess(sandbox, processes, input, context),
  };
}

async function startProcess(sandbox: Sandbox, processes: SessionProcesses, input: StartInput, context: ToolContext) {
  const { session, call } = context;
  const { command, workdir, timeout_seconds: timeoutSeconds = 0, pty: size } = input;
  const what = {
    command,
    argv: [],
    cwd: locateWorkdir(sandbox, context, workdir),
    user: "",
    env: {},
    size,
    stdin: true,
    login: false,
  };
  const names = { id: "", tag: "", label: "", sessionId: session.id };
  if (size !== undefined) await sandbox.defaults.confinement.terminalTurn(call.caller?.capability);
  const record = start(sandbox, {
    ...what,
    ...names,
    timeoutMs: timeoutSeconds * 1000,
    limits: {},
    capability: call.caller?.capability,
    trace: call.trace,
  });
  call.processId = record.id;
  processes.add(session, record);
  return { structured: { ...stateOf(record), ...(record.process && { pid: record.process.leaderPid }) } };
}
