import type { MethodRequirements } from "../../auth/scopes.js";
import type { FilesystemService } from "../../gen/picod/v1/filesystem_pb.js";
import type { ProcessService } from "../../gen/picod/v1/process_pb.js";

export const FILESYSTEM_SERVICE = "picod.v1.FilesystemService";
export const PROCESS_SERVICE = "picod.v1.ProcessService";

export const FILESYSTEM_SCOPES: MethodRequirements<typeof FilesystemService> = {
  stat: "files:read",
  readFile: "files:read",
  writeFile: "files:write",
  commitUpload: "files:write",
  getUpload: "files:write",
  listUploads: "files:write",
  abortUpload: "files:write",
  // The scope that the address opens: its method asks for that one.
  createSignedUrl: "files",
  listDirectory: "files:read",
  makeDirectory: "files:write",
  move: "files:write",
  copy: "files:write",
  remove: "files:write",
  setAttributes: "files:write",
  watchDirectory: "files:read",
  getChanges: "files:read",
  find: "files:read",
  search: "files:read",
  readArchive: "files:read",
  writeArchive: "files:write",
};

export const PROCESS_SCOPES: MethodRequirements<typeof ProcessService> = {
  execute: "process",
  start: "process",
  attach: "process:read",
  getProcess: "process:read",
  listProcesses: "process:read",
  // It decides how long a process waits for its reader.
  acknowledgeOutput: "process",
  watchProcesses: "process:read",
  sendInput: "process",
  streamInput: "process",
  closeInput: "process",
  resizePty: "process",
  sendSignal: "process",
  updateProcess: "process",
  stopProcess: "process",
  deleteProcess: "process",
};
