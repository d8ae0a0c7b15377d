import { health, liveness, readinessCheck } from "../api/http/health.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import { answerJson, answerText } from "./answer.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";

export type PlainRoute = (request: HttpRequest, response: HttpResponse) => Promise<void> | void;

/** Routes of plain HTTP by path; all of them are read with GET or HEAD. */
export function createPlainRoutes(readiness: Readiness, metrics: Metrics): ReadonlyMap<string, PlainRoute> {
  const startedAt = performance.now();
  return new Map<string, PlainRoute>([
    ["/healthz", (_request, response) => answerJson(response, ...liveness())],
    ["/readyz", (_request, response) => answerJson(response, ...readinessCheck(readiness))],
    ["/health", (_request, response) => answerJson(response, ...health(startedAt))],
    [
      "/metrics",
      async (_request, response) => answerText(response, 200, { "content-type": metrics.contentType }, await metrics.text()),
    ],
  ]);
}
