import type { Capability } from "../policy/capability.js";
import type { ProcessRecord } from "./process-record.js";
import { unlessAborted } from "./unless-aborted.js";

/**
 * Writes one piece of input in its turn and waits until the pipe or the terminal has taken it.
 * @throws POLICY_DENIED, PROCESS_ENDED, INPUT_CLOSED; EPIPE when nobody reads any longer; the signal's reason, while what was written stays so.
 */
export async function writeInput(
  record: ProcessRecord,
  capability: Capability | undefined,
  data: Uint8Array,
  abortSignal: AbortSignal,
): Promise<void> {
  for (let input = record.inputOf(capability); input.queuedBytes > 0; input = record.inputOf(capability)) {
    await unlessAborted(input.drained(), abortSignal);
  }
  record.inputBytes += data.length;
  await unlessAborted(record.inputOf(capability).writeFully(data), abortSignal);
}
