import { createEventRoutes } from "../api/http/events.js";
import { health, liveness, readinessCheck } from "../api/http/health.js";
import { createProcessRoutes } from "../api/http/processes.js";
import type { HttpRoute } from "../api/http/route.js";
import { createTerminalPageRoutes } from "../api/http/terminal-page.js";
import { createTicketRoutes } from "../api/http/tickets.js";
import type { Tickets } from "../auth/tickets.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Sandbox } from "../sandbox.js";

export interface PlainRouteParts {
  readonly sandbox: Sandbox;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly tickets: Tickets;
  readonly terminalPage: boolean;
}

/** Every route of plain HTTP. */
export function createPlainRoutes({ sandbox, readiness, metrics, tickets, terminalPage }: PlainRouteParts): HttpRoute[] {
  const startedAt = performance.now();
  return [
    { method: "GET", path: "/healthz", handle: ({ sendJson }) => sendJson(...liveness()) },
    { method: "GET", path: "/readyz", handle: ({ sendJson }) => sendJson(...readinessCheck(readiness)) },
    { method: "GET", path: "/health", handle: ({ sendJson }) => sendJson(...health(startedAt)) },
    {
      method: "GET",
      path: "/metrics",
      handle: async ({ send }) => send(200, { "content-type": metrics.contentType }, await metrics.text()),
    },
    ...createProcessRoutes(sandbox),
    ...createEventRoutes(sandbox),
    ...createTicketRoutes(tickets),
    ...(terminalPage ? createTerminalPageRoutes() : []),
  ];
}
