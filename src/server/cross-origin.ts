import type { HttpRequest, HttpResponse } from "./http-types.js";

const METHODS = ["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"];
const EXPOSED = [
  "Grpc-Status",
  "Grpc-Message",
  "Grpc-Status-Details-Bin",
  "Location",
  "Cache-Control",
  "X-Content-Type-Options",
].join(", ");
const MAX_AGE_SECONDS = 7200;

/** Lets pages of every origin read the answer. True when the request was the browser's question whether it may, which is answered. */
export function answerCrossOrigin({ method = "", headers }: HttpRequest, response: HttpResponse): boolean {
  const { origin } = headers;
  const asked = headers["access-control-request-method"];
  response.setHeader("vary", "Origin");
  if (method === "OPTIONS" && asked !== undefined) {
    response.setHeader("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    if (origin !== undefined && METHODS.includes(asked.toUpperCase())) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-allow-methods", asked.toUpperCase());
      response.setHeader("access-control-max-age", MAX_AGE_SECONDS);
      const names = headers["access-control-request-headers"];
      if (names !== undefined) response.setHeader("access-control-allow-headers", names);
    }
    response.writeHead(204).end();
    return true;
  }
  if (origin !== undefined) {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-expose-headers", EXPOSED);
  }
  return false;
}
