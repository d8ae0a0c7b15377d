import type { Config } from "../../config.js";
import type { Sandbox } from "../../sandbox.js";
import type { LimitSettings } from "./limits.js";
import { SandboxSessions, type SessionSettings } from "./sessions/sandbox-sessions.js";
import { type RunSubcall, ToolServer, type Validate } from "./tool-server.js";
import { createTools } from "./tool-table.js";

export interface McpParts {
  readonly sandbox: Sandbox;
  readonly config: McpSettings;
  readonly version: string;
  readonly runSubcall: RunSubcall;
}

export type McpSettings = Pick<Config, "imageName"> & SessionSettings & LimitSettings;

/** Every tool and the sessions that they work in, whatever brings the requests. */
export function createToolServer(
  { sandbox, config, runSubcall }: McpParts,
  compileSchema: (schema: object) => Validate,
): { readonly tools: ToolServer; readonly sessions: SandboxSessions } {
  const sessions = new SandboxSessions(sandbox, config);
  const tools = createTools(sandbox, sessions, config);
  return { sessions, tools: new ToolServer({ tools, sessions, limits: config, runSubcall, compileSchema }) };
}
