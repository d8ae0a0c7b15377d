import { isUtf8 } from "node:buffer";
import { PicodError } from "../../../../errors/picod-error.js";
import { awaitOutput } from "../../../../process/await-output.js";
import type { OutputLog } from "../../../../process/output-log.js";
import type { ProcessRecord } from "../../../../process/process-record.js";
import { ENCODING, type Encoding, withoutPartialEnd } from "../content.js";
import type { Tool, ToolContext } from "../tool.js";
import { PROCESS_ID, STATE_PROPERTIES, stateOf } from "./process-state.js";
import type { SessionProcesses } from "./session-processes.js";

const DEFAULT_BYTES = 16 * 1024;
const MAX_BYTES = 256 * 1024;
/** Less than what clients wait for an answer. */
const MAX_WAIT_SECONDS = 30;

interface OutputInput {
  readonly process_id: string;
  readonly stdout_offset?: number;
  readonly stderr_offset?: number;
  readonly max_bytes?: number;
  readonly wait_seconds?: number;
  readonly encoding?: Encoding;
}

const OFFSET = { type: "integer", minimum: 0, default: 0, description: "First byte wanted: next_offset of the answer before." };
const PIECE = {
  type: "object",
  properties: {
    content: { type: "string" },
    offset: { type: "integer", description: "Of its first byte in all that was printed." },
    next_offset: { type: "integer", description: "Where to go on." },
    total_bytes: { type: "integer", description: "Printed so far." },
    trimmed_bytes: { type: "integer", description: "Between the offset that was asked for and the content: no longer kept." },
    utf8_replaced: { type: "boolean", description: "What is not UTF-8 was replaced; ask for it in base64." },
  },
  required: ["content", "offset", "next_offset", "total_bytes"],
};

/** Reads what a background process has printed. */
export function createProcessOutputTool(processes: SessionProcesses): Tool {
  return {
    name: "sandbox_process_output",
    title: "Read the output of a background process",
    description:
      "Returns what a background process has printed from the given offsets on, and whether it has ended and how. With wait_seconds it waits " +
      "for something new. All is read when the status is ended and both next_offset are total_bytes.",
    requires: "process:read",
    inputSchema: {
      type: "object",
      properties: {
        process_id: PROCESS_ID,
        stdout_offset: OFFSET,
        stderr_offset: OFFSET,
        max_bytes: { type: "integer", minimum: 4, maximum: MAX_BYTES, default: DEFAULT_BYTES, description: "Of each stream." },
        wait_seconds: {
          type: "number",
          minimum: 0,
          maximum: MAX_WAIT_SECONDS,
          default: 0,
          description: "How long to wait for new output, or the end, when there is none.",
        },
        encoding: ENCODING,
      },
      required: ["process_id"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: { ...STATE_PROPERTIES, stdout: PIECE, stderr: PIECE },
      required: ["process_id", "status", "stdout"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    run: (input: OutputInput, context) => readOutput(processes, input, context),
  };
}

async function readOutput(processes: SessionProcesses, input: OutputInput, { session, call, abortSignal }: ToolContext) {
  const { stdout_offset: stdout = 0, stderr_offset: stderr = 0, wait_seconds: waitSeconds = 0 } = input;
  const record = processes.find(session, input.process_id);
  call.processId = record.id;
  // A terminal has one stream.
  const offsets = new Map([...record.logs.keys()].map((stream) => [stream, stream === "stderr" ? stderr : stdout]));
  for (const [stream, offset] of offsets) assertPrinted(record, stream, record.logs.get(stream)?.end ?? 0, offset);
  await awaitOutput(record, offsets, waitSeconds * 1000, abortSignal);
  // Asked before reading: what is printed between the two is then still read.
  const state = stateOf(record);
  const pieces = [...record.logs].map(([stream, log]) => {
    return [stream === "stderr" ? "stderr" : "stdout", pieceOf(log, offsets.get(stream) ?? 0, state.status === "ended", input)];
  });
  return { structured: { ...state, ...Object.fromEntries(pieces) } };
}

function assertPrinted({ id }: ProcessRecord, stream: string, end: number, offset: number): void {
  if (offset <= end) return;
  const message = `cannot read output of ${id}: ${stream} offset ${offset} is beyond the ${end} bytes that were written`;
  throw new PicodError("OFFSET_BEYOND_END", message, { id });
}

function pieceOf(log: OutputLog, asked: number, isComplete: boolean, input: OutputInput) {
  const { max_bytes: maxBytes = DEFAULT_BYTES, encoding = "text" } = input;
  const offset = Math.max(asked, log.keptFrom);
  const bytes = log.read(offset, maxBytes);
  const isLast = isComplete && offset + bytes.length === log.end;
  const shown = encoding === "text" && !isLast ? withoutPartialEnd(bytes) : bytes;
  return {
    content: shown.toString(encoding === "text" ? "utf8" : "base64"),
    offset,
    next_offset: offset + shown.length,
    total_bytes: log.end,
    ...(offset > asked && { trimmed_bytes: offset - asked }),
    ...(encoding === "text" && !isUtf8(shown) && { utf8_replaced: true }),
  };
}
