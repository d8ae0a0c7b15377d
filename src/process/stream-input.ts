import type { Capability } from "../policy/capability.js";
import type { ProcessRecord } from "./process-record.js";
import { unlessAborted } from "./unless-aborted.js";

/**
 * Sends pieces of input one after the other, at the pace at which the process reads them. Returns how much input there is now.
 * @throws POLICY_DENIED, PROCESS_ENDED, INPUT_CLOSED, OFFSET_BEYOND_END; the signal's reason.
 */
export async function streamInput(
  record: ProcessRecord,
  capability: Capability | undefined,
  pieces: AsyncIterator<Uint8Array>,
  offset: bigint | undefined,
  abortSignal: AbortSignal,
): Promise<number> {
  let position = offset;
  for (;;) {
    // Neither a sender that pauses nor a process that reads nothing may keep the call from ending.
    const next = await unlessAborted(pieces.next(), abortSignal);
    if (next.done) return record.inputBytes;
    // Others may be sending to it too.
    for (let input = record.inputOf(capability); input.queuedBytes > 0; input = record.inputOf(capability)) {
      await unlessAborted(input.drained(), abortSignal);
    }
    record.sendInput(capability, next.value, position, next.value.length);
    if (position !== undefined) position += BigInt(next.value.length);
  }
}
