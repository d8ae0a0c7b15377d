import type { ProcessRecord } from "../../../../process/process-record.js";
import type { Tool } from "../tool.js";
import { STATE_PROPERTIES, stateOf } from "./process-state.js";
import type { SessionProcesses } from "./session-processes.js";

/** Of a command line: enough to know it again. */
const MAX_COMMAND_CHARACTERS = 500;

/** Lists the background processes of the session. */
export function createListProcessesTool(processes: SessionProcesses): Tool {
  return {
    name: "sandbox_process_list",
    title: "List background processes",
    description: "Lists the background processes of this session, oldest first, with those that have ended some time ago.",
    requires: "process:read",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    outputSchema: {
      type: "object",
      properties: {
        processes: {
          type: "array",
          items: {
            type: "object",
            properties: {
              ...STATE_PROPERTIES,
              command: { type: "string" },
              pid: { type: "integer" },
              pty: { type: "boolean" },
              started_at: { type: "string", format: "date-time" },
              stdout_bytes: { type: "integer" },
              stderr_bytes: { type: "integer" },
            },
            required: ["process_id", "status", "command", "pty", "started_at"],
          },
        },
      },
      required: ["processes"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    whenNotOpen: () => ({ structured: { processes: [] } }),
    run: (_input, { session }) => ({ structured: { processes: processes.list(session).map(describe) } }),
  };
}

function describe(record: ProcessRecord): object {
  const { from, logs, process, startedAtMs } = record;
  const bytes = [...logs].map(([stream, { end }]) => [stream === "stderr" ? "stderr_bytes" : "stdout_bytes", end]);
  return {
    ...stateOf(record),
    command: from.command.slice(0, MAX_COMMAND_CHARACTERS),
    ...(process && { pid: process.leaderPid }),
    pty: from.size !== undefined,
    started_at: new Date(startedAtMs).toISOString(),
    ...Object.fromEntries(bytes),
  };
}
