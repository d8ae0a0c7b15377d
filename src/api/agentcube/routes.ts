import type { Config } from "../../config.js";
import type { Sandbox } from "../../sandbox.js";
import type { HttpRoute } from "../http-route.js";
import { downloadFile } from "./download.js";
import { agentCubeErrors } from "./errors.js";
import { executeCommand } from "./execute.js";
import { listFiles } from "./list.js";
import { uploadFile } from "./upload.js";
import { Workspace } from "./workspace.js";

/** What AgentCube's router and its clients call; its `/health` is everybody's. */
export function createAgentCubeRoutes(sandbox: Sandbox, config: Pick<Config, "workspace" | "root" | "workdir">): HttpRoute[] {
  const workspace = new Workspace(sandbox, config);
  return [
    {
      method: "POST",
      path: "/api/execute",
      requires: "process",
      ...agentCubeErrors(),
      handle: (exchange) => executeCommand(sandbox, workspace, exchange),
    },
    {
      method: "POST",
      path: "/api/files",
      requires: "files:write",
      streamsBody: true,
      transfers: true,
      ...agentCubeErrors(),
      handle: (exchange) => uploadFile(workspace, exchange),
    },
    {
      method: "GET",
      path: "/api/files",
      requires: "files:read",
      ...agentCubeErrors("Directory not found"),
      handle: (exchange) => listFiles(workspace, exchange),
    },
    {
      method: "GET",
      path: "/api/files/{path...}",
      requires: "files:read",
      transfers: true,
      ...agentCubeErrors("File not found"),
      handle: (exchange) => downloadFile(workspace, exchange),
    },
  ];
}
