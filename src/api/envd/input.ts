import { Code, ConnectError } from "@connectrpc/connect";
import { PicodError } from "../../errors/picod-error.js";
import type { ProcessInput } from "../../gen/envd/process/process_pb.js";
import type { Capability } from "../../policy/capability.js";
import { writeInput } from "../../process/write-input.js";
import type { EnvdProcess } from "./processes.js";

/** Writes to a terminal or to a pipe, as the input says. @throws internal when the process has none of that kind or reads no more. */
export async function sendInput(
  { record }: EnvdProcess,
  capability: Capability | undefined,
  message: ProcessInput | undefined,
  signal: AbortSignal,
): Promise<void> {
  const input = message?.input;
  if (input?.case === undefined) throw new ConnectError("invalid input type: neither stdin nor pty", Code.Unimplemented);
  const isTerminal = record.size !== undefined;
  if (isTerminal !== (input.case === "pty")) {
    const why = isTerminal ? "the process has a terminal" : "the process has no terminal";
    throw new ConnectError(`error writing to ${input.case}: ${why}`, Code.Internal);
  }
  try {
    await writeInput(record, capability, input.value, signal);
  } catch (error) {
    if (signal.aborted || (error instanceof PicodError && error.reason === "POLICY_DENIED")) throw error;
    const why = error instanceof Error ? error.message : "";
    throw new ConnectError(`error writing to ${input.case}: ${why}`, Code.Internal, undefined, undefined, error);
  }
}
