import type { MethodRequirements } from "../../auth/scopes.js";
import type { ProcessService } from "../../gen/sandboxd/process/v1/process_pb.js";

export const SANDBOXD_PROCESS_SERVICE = "process.v1.ProcessService";

export const SANDBOXD_PROCESS_SCOPES: MethodRequirements<typeof ProcessService> = {
  start: "process",
  execute: "process",
  writeStdin: "process",
  sendSignal: "process",
  resizeTTY: "process",
};
