import { type ConnectRouter, createConnectRouter, type Interceptor } from "@connectrpc/connect";
import { EnvdState } from "../../src/api/envd/state.js";
import type { HttpRoute } from "../../src/api/http-route.js";
import { SandboxSessions } from "../../src/api/mcp/sessions/sandbox-sessions.js";
import { createTools } from "../../src/api/mcp/tool-table.js";
import type { Tool } from "../../src/api/mcp/tools/tool.js";
import { registerServices } from "../../src/api/routes.js";
import { type Requirement, requirementsByPath } from "../../src/auth/scopes.js";
import { Tickets } from "../../src/auth/tickets.js";
import { loadConfig } from "../../src/config.js";
import { createInterceptors } from "../../src/interceptors/index.js";
import { createMetrics } from "../../src/metrics.js";
import { Confinement } from "../../src/policy/confinement.js";
import { Readiness } from "../../src/readiness.js";
import { createSandbox } from "../../src/sandbox.js";
import { createPlainRoutes } from "../../src/server/plain-routes.js";

const metrics = createMetrics("0", () => 0);
const sandbox = createSandbox(
  loadConfig({}, {}),
  {},
  new Confinement({ path: "", shell: undefined, onRefused: () => undefined, onLeftOut: () => undefined }),
);
// It would take the exits of the daemons of tests for those of its orphans.
await sandbox.processes.close();

/** What each RPC asks of its caller, by path, as the daemon registers it. */
export const rpcRequirements: ReadonlyMap<string, Requirement> = (() => {
  const found = new Map<string, Requirement>();
  registerServices(
    (name, requirements) => {
      for (const [path, requirement] of requirementsByPath(name, requirements)) found.set(path, requirement);
    },
    sandbox,
    new Readiness(),
    new EnvdState(undefined),
  );
  return found;
})();

export const interceptors: Interceptor[] = createInterceptors(metrics, rpcRequirements, undefined, false);

/** Adds every service as the daemon registers it. */
export function registerAll(router: ConnectRouter): void {
  registerServices(
    (_name, _requirements, { describe, implement, options }) => router.service(describe(), implement(), options),
    sandbox,
    new Readiness(),
    new EnvdState(undefined),
  );
}

export function registeredRpcs(): ConnectRouter["handlers"] {
  const router = createConnectRouter({ interceptors });
  registerAll(router);
  return router.handlers;
}

/** Every route of plain HTTP, the terminal page among them. */
export function registeredRoutes(): HttpRoute[] {
  return createPlainRoutes({
    sandbox,
    envd: new EnvdState(undefined),
    readiness: new Readiness(),
    metrics,
    tickets: new Tickets(0),
    config: { ...loadConfig({}, {}), terminalPage: true },
    instanceId: "",
    runSubcall: () => Promise.reject(new Error("nothing is called")),
  });
}

/** Every tool of MCP. */
export function registeredTools(): Tool[] {
  const config = loadConfig({}, {});
  return createTools(sandbox, new SandboxSessions(sandbox, config), config);
}
