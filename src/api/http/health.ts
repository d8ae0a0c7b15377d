import type { Readiness } from "../../readiness.js";
import { version } from "../../version.js";

/** GET /healthz: the process is there and its event loop turns. */
export function liveness(): [status: number, body: object] {
  return [200, { status: "ok" }];
}

/** GET /readyz: new work is welcome. */
export function readinessCheck(readiness: Readiness): [status: number, body: object] {
  return readiness.ready ? [200, { status: "ok" }] : [503, { status: "shutting down" }];
}

/** GET /health, in the words of AgentCube's clients; E2B's accept any 2xx. */
export function health(startedAt: number, instanceId: string): [status: number, body: object] {
  const uptime = goDuration(performance.now() - startedAt);
  return [200, { status: "ok", service: "PicoD", version, uptime, instance: instanceId }];
}

/** "1h2m3.4s", as Go prints a duration. */
function goDuration(milliseconds: number): string {
  const hours = Math.floor(milliseconds / 3_600_000);
  const minutes = Math.floor(milliseconds / 60_000) % 60;
  const seconds = `${Math.round(milliseconds % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
