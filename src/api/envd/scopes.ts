import type { MethodRequirements } from "../../auth/scopes.js";
import type { Filesystem } from "../../gen/envd/filesystem/filesystem_pb.js";
import type { Process } from "../../gen/envd/process/process_pb.js";

export const ENVD_FILESYSTEM = "filesystem.Filesystem";
export const ENVD_PROCESS = "process.Process";

export const ENVD_FILESYSTEM_SCOPES: MethodRequirements<typeof Filesystem> = {
  stat: "files:read",
  makeDir: "files:write",
  move: "files:write",
  listDir: "files:read",
  remove: "files:write",
  watchDir: "files:read",
  createWatcher: "files:read",
  getWatcherEvents: "files:read",
  removeWatcher: "files:read",
};

export const ENVD_PROCESS_SCOPES: MethodRequirements<typeof Process> = {
  list: "process:read",
  connect: "process:read",
  start: "process",
  update: "process",
  streamInput: "process",
  sendInput: "process",
  sendSignal: "process",
  closeStdin: "process",
};
