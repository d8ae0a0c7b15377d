import type { ProcessRecord } from "./process-record.js";
import { unlessAborted } from "./unless-aborted.js";

/**
 * Writes one piece of input in its turn and waits until the pipe or the terminal has taken it.
 * @throws PROCESS_ENDED, INPUT_CLOSED; EPIPE when nobody reads any longer; the signal's reason, while what was written stays so.
 */
export async function writeInput(record: ProcessRecord, data: Uint8Array, abortSignal: AbortSignal): Promise<void> {
  while (record.openInput().queuedBytes > 0) await unlessAborted(record.openInput().drained(), abortSignal);
  record.inputBytes += data.length;
  await unlessAborted(record.openInput().writeFully(data), abortSignal);
}
