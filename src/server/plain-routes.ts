import { createAgentCubeRoutes } from "../api/agentcube/routes.js";
import { createEnvdMetrics, createEnvdRoutes } from "../api/envd/routes.js";
import type { EnvdState } from "../api/envd/state.js";
import { createArchiveRoutes } from "../api/http/archive.js";
import { createEventRoutes } from "../api/http/events.js";
import { createFileRoutes } from "../api/http/files.js";
import { health, liveness, readinessCheck } from "../api/http/health.js";
import { createProcessRoutes } from "../api/http/processes.js";
import { createTerminalPageRoutes } from "../api/http/terminal-page.js";
import { createTicketRoutes } from "../api/http/tickets.js";
import type { HttpRoute } from "../api/http-route.js";
import type { McpSettings } from "../api/mcp/create-tool-server.js";
import { createMcpRoutes } from "../api/mcp/http/routes.js";
import type { RunSubcall } from "../api/mcp/tool-server.js";
import { createSandboxdRoutes } from "../api/sandboxd/rest.js";
import type { Tickets } from "../auth/tickets.js";
import type { Config } from "../config.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Sandbox } from "../sandbox.js";
import { version } from "../version.js";

export interface PlainRouteParts {
  readonly sandbox: Sandbox;
  /** Undefined: E2B's routes are left out. */
  readonly envd: EnvdState | undefined;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly tickets: Tickets;
  readonly config: Pick<Config, "terminalPage" | "metricsPublic" | "metadataEnvPrefix" | "workspace" | "root" | "workdir"> &
    McpSettings;
  /** Of this run of the daemon. */
  readonly instanceId: string;
  readonly runSubcall: RunSubcall;
}

/** Every route of plain HTTP. */
export function createPlainRoutes(parts: PlainRouteParts): HttpRoute[] {
  const { sandbox, envd, readiness, metrics, tickets, config, instanceId, runSubcall } = parts;
  const answeredAsEnvd = envd === undefined ? () => false : createEnvdMetrics();
  const startedAt = performance.now();
  return [
    { method: "GET", path: "/healthz", requires: "public", handle: ({ sendJson }) => sendJson(...liveness()) },
    { method: "GET", path: "/readyz", requires: "public", handle: ({ sendJson }) => sendJson(...readinessCheck(readiness)) },
    { method: "GET", path: "/health", requires: "public", handle: ({ sendJson }) => sendJson(...health(startedAt, instanceId)) },
    {
      method: "GET",
      path: "/metrics",
      requires: config.metricsPublic ? "public" : "admin",
      handle: async (exchange) => {
        if (!answeredAsEnvd(exchange)) exchange.send(200, { "content-type": metrics.contentType }, await metrics.text());
      },
    },
    ...createSandboxdRoutes(readiness, sandbox.inheritedEnvironment, config.metadataEnvPrefix),
    ...createProcessRoutes(sandbox),
    ...createEventRoutes(sandbox),
    ...createTicketRoutes(tickets),
    ...createFileRoutes(sandbox),
    ...createArchiveRoutes(sandbox),
    ...(envd === undefined ? [] : createEnvdRoutes(sandbox, envd)),
    ...createAgentCubeRoutes(sandbox, config),
    ...createMcpRoutes({ sandbox, config, version, runSubcall }),
    ...(config.terminalPage ? createTerminalPageRoutes() : []),
  ];
}
