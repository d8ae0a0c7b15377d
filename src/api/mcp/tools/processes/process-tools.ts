import type { Sandbox } from "../../../../sandbox.js";
import type { Tool } from "../tool.js";
import { createListProcessesTool } from "./list-processes-tool.js";
import { createProcessInputTool } from "./process-input-tool.js";
import { createProcessOutputTool } from "./process-output-tool.js";
import { SessionProcesses } from "./session-processes.js";
import { createStartProcessTool } from "./start-process-tool.js";
import { createStopProcessTool } from "./stop-process-tool.js";

/** The tools for processes that run on after the call that starts them. */
export function createProcessTools(sandbox: Sandbox): Tool[] {
  const processes = new SessionProcesses(sandbox.registry);
  return [
    createStartProcessTool(sandbox, processes),
    createProcessOutputTool(processes),
    createProcessInputTool(sandbox, processes),
    createStopProcessTool(sandbox, processes),
    createListProcessesTool(processes),
  ];
}
