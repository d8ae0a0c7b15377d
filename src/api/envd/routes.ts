import type { Sandbox } from "../../sandbox.js";
import type { HttpExchange, HttpRoute } from "../http-route.js";
import { composeFiles } from "./compose.js";
import { getFile } from "./file-get.js";
import { postFiles } from "./file-post.js";
import { Init } from "./init.js";
import { MachineMetrics } from "./metrics.js";
import { REST_ERRORS } from "./rest-errors.js";
import type { EnvdState } from "./state.js";

/** The plain HTTP of E2B's envd, besides /health and /metrics. */
export function createEnvdRoutes(sandbox: Sandbox, state: EnvdState): HttpRoute[] {
  const init = new Init(state);
  return [
    {
      ...REST_ERRORS,
      method: "GET",
      path: "/files",
      requires: "files:read",
      transfers: true,
      handle: (exchange) => getFile(sandbox, state, exchange),
    },
    {
      ...REST_ERRORS,
      method: "POST",
      path: "/files",
      requires: "files:write",
      streamsBody: true,
      transfers: true,
      handle: (exchange) => postFiles(sandbox, state, exchange),
    },
    {
      ...REST_ERRORS,
      method: "POST",
      path: "/files/compose",
      requires: "files:write",
      handle: (exchange) => composeFiles(sandbox, state, exchange),
    },
    { ...REST_ERRORS, method: "POST", path: "/init", requires: "admin", handle: (exchange) => init.handle(exchange) },
    {
      ...REST_ERRORS,
      method: "GET",
      path: "/envs",
      requires: "admin",
      handle: ({ sendJson }) => sendJson(200, state.environment, { "cache-control": "no-store" }),
    },
  ];
}

/** GET /metrics answers Prometheus' text unless the caller prefers JSON: that is E2B's object. */
export function createEnvdMetrics(): (exchange: HttpExchange) => boolean {
  const machine = new MachineMetrics();
  return ({ request, sendJson }) => {
    if (!/^application\/json\b/i.test(request.headers.accept ?? "")) return false;
    sendJson(200, machine.read());
    return true;
  };
}
