import { stop } from "../../../../process/stop.js";
import type { Sandbox } from "../../../../sandbox.js";
import type { Tool, ToolContext } from "../tool.js";
import { PROCESS_ID, STATE_PROPERTIES, stateOf } from "./process-state.js";
import type { SessionProcesses } from "./session-processes.js";

/** Less than what clients wait for an answer. */
const MAX_GRACE_SECONDS = 30;

interface StopInput {
  readonly process_id: string;
  readonly grace_seconds?: number;
}

/** Ends a background process and all that it has started. */
export function createStopProcessTool({ defaults: { killGraceMs } }: Sandbox, processes: SessionProcesses): Tool {
  return {
    name: "sandbox_process_stop",
    title: "Stop a background process",
    description:
      "Ends a background process and every descendant: TERM, then after the grace period KILL, and waits until they are gone. Of one that has " +
      "ended it reaches what was left running. The output can still be read.",
    requires: "process",
    inputSchema: {
      type: "object",
      properties: {
        process_id: PROCESS_ID,
        grace_seconds: {
          type: "number",
          minimum: 0,
          maximum: MAX_GRACE_SECONDS,
          default: killGraceMs / 1000,
          description: "From TERM to KILL; 0 is KILL at once.",
        },
      },
      required: ["process_id"],
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        ...STATE_PROPERTIES,
        forced: { type: "boolean", description: "KILL was needed." },
        surviving_processes: { type: "integer", description: "Could not be ended." },
      },
      required: ["process_id", "status", "forced", "surviving_processes"],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async run({ process_id: id, grace_seconds: seconds }: StopInput, { session, call }: ToolContext) {
      const record = processes.find(session, id);
      call.processId = record.id;
      const graceMs = seconds === undefined ? killGraceMs : seconds * 1000;
      const { forced, survivingProcesses } = await stop(record.process, graceMs === 0 ? "none" : graceMs);
      return { structured: { ...stateOf(record), forced, surviving_processes: survivingProcesses } };
    },
  };
}
