import type { Config } from "../../config.js";
import type { Sandbox } from "../../sandbox.js";
import type { SandboxSessions } from "./sessions/sandbox-sessions.js";
import { createCloseTool } from "./tools/close-tool.js";
import { createDeleteTool } from "./tools/delete-tool.js";
import { createEditTool } from "./tools/edit-tool.js";
import { createExecTool } from "./tools/exec-tool.js";
import { createListTool } from "./tools/list-tool.js";
import { createOpenTool } from "./tools/open-tool.js";
import { createProcessTools } from "./tools/processes/process-tools.js";
import { createReadTool } from "./tools/read-tool.js";
import { createSearchTool } from "./tools/search-tool.js";
import type { Tool } from "./tools/tool.js";
import { createWriteTool } from "./tools/write-tool.js";

/** Every tool, in the order in which clients see them. What each asks of callers is its `requires`. */
export function createTools(sandbox: Sandbox, sessions: SandboxSessions, config: Pick<Config, "imageName">): Tool[] {
  return [
    createOpenTool(config),
    createExecTool(sandbox),
    createWriteTool(sandbox),
    createReadTool(sandbox),
    createEditTool(sandbox),
    createListTool(sandbox),
    createSearchTool(sandbox),
    createDeleteTool(sandbox),
    ...createProcessTools(sandbox),
    createCloseTool(sandbox, sessions),
  ];
}
