import type { ProcessRecord } from "../../../../process/process-record.js";

export const PROCESS_ID = { type: "string", minLength: 1, description: "As sandbox_process_start returned it." };

/** How a command has ended, in a schema. */
export const OUTCOME = {
  type: "string",
  enum: ["exited", "signaled", "timed_out", "cancelled", "out_of_memory", "spawn_failed"],
};

/** Output schemas of what `stateOf` tells. */
export const STATE_PROPERTIES = {
  process_id: { type: "string" },
  status: { type: "string", enum: ["running", "stopping", "ended"] },
  exit_code: { type: "integer", description: "When it has ended: 128+n after signal n, 124 when its time was up." },
  outcome: { ...OUTCOME, description: "When it has ended; cancelled: it was stopped." },
  note: { type: "string", description: "How it ended, when it did not end by itself." },
};

/** Whether a process runs, and how it has ended. */
export function stateOf(record: ProcessRecord) {
  const { id, state, end } = record;
  return {
    process_id: id,
    status: state,
    ...(end && { exit_code: end.exitCode, outcome: end.reason.replaceAll("-", "_") }),
    ...(end && end.message !== "" && { note: end.message }),
  };
}
