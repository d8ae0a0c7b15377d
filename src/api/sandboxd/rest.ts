import type { Readiness } from "../../readiness.js";
import type { HttpRoute } from "../http-route.js";

/** Part of a name that makes it a secret's. */
const SECRET = /TOKEN|SECRET|PASSWORD|PASSWD|CRED|KEY|AUTH|BEARER|PRIVATE|CERT/i;

/** /v1/health and /v1/metadata, as the runtime standard of agent-sandbox has them. */
export function createSandboxdRoutes(
  readiness: Readiness,
  environment: Readonly<Record<string, string>>,
  metadataEnvPrefix: string,
): HttpRoute[] {
  const startedAt = performance.now();
  const shown = Object.entries(environment).filter(([name]) => name.startsWith(metadataEnvPrefix) && !SECRET.test(name));
  return [
    {
      method: "GET",
      path: "/v1/health",
      requires: "public",
      handle({ sendJson }) {
        const uptime = Math.floor((performance.now() - startedAt) / 1000);
        if (readiness.ready) sendJson(200, { status: "ok", uptime_seconds: uptime });
        else sendJson(503, { code: "UNAVAILABLE", message: "the daemon is shutting down" });
      },
    },
    {
      method: "GET",
      path: "/v1/metadata",
      requires: "process:read",
      handle: ({ sendJson }) => sendJson(200, { env: Object.fromEntries(shown) }),
    },
  ];
}
