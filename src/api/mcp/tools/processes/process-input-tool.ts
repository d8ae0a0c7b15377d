import type { Sandbox } from "../../../../sandbox.js";
import { decodeContent, ENCODING, type Encoding } from "../content.js";
import type { Tool, ToolContext } from "../tool.js";
import { PROCESS_ID } from "./process-state.js";
import type { SessionProcesses } from "./session-processes.js";

interface ProcessInput {
  readonly process_id: string;
  readonly content?: string;
  readonly encoding?: Encoding;
  readonly close?: boolean;
}

/** Writes to the standard input of a background process. */
export function createProcessInputTool({ maxInputBytes }: Sandbox, processes: SessionProcesses): Tool {
  return {
    name: "sandbox_process_input",
    title: "Send input to a background process",
    description:
      "Writes to the standard input of a background process, or types at its terminal (\\r is the enter key there), and closes the input when " +
      "close is set. It does not wait for the process to read.",
    requires: "process",
    inputSchema: {
      type: "object",
      properties: {
        process_id: PROCESS_ID,
        content: { type: "string", default: "", description: "As it is: a line needs its newline." },
        encoding: ENCODING,
        close: { type: "boolean", default: false, description: "End of file follows the content." },
      },
      required: ["process_id"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        process_id: { type: "string" },
        input_bytes: { type: "integer", description: "Sent so far, this included." },
        closed: { type: "boolean" },
      },
      required: ["process_id", "input_bytes", "closed"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    run({ process_id: id, content = "", encoding = "text", close = false }: ProcessInput, { session, call }: ToolContext) {
      const record = processes.find(session, id);
      call.processId = record.id;
      const data = decodeContent(content, encoding);
      // Closing what is closed already is no error.
      if (data.length > 0 || !close) record.sendInput(call.caller?.capability, data, undefined, maxInputBytes);
      if (close) record.closeInput();
      return { structured: { process_id: id, input_bytes: record.inputBytes, closed: close } };
    },
  };
}
