import { Code } from "@connectrpc/connect";
import type { Realm, Refusal } from "../refusal.js";
import type { HttpRequest, HttpResponse } from "./http-types.js";

const METHODS = ["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"];
const EXPOSED = [
  "Grpc-Status",
  "Grpc-Message",
  "Grpc-Status-Details-Bin",
  "Location",
  "Cache-Control",
  "X-Content-Type-Options",
  "Mcp-Session-Id",
].join(", ");
const MAX_AGE_SECONDS = 7200;

type Allowed = NonNullable<Realm["crossOrigin"]>;

/** Lets pages of some origins, or of every one, read the answer. True when the request was the browser's question whether it may, which is answered. */
export function answerCrossOrigin({ method = "", headers }: HttpRequest, response: HttpResponse, allowed: Allowed): boolean {
  const { origin } = headers;
  const asked = headers["access-control-request-method"];
  const shown = allowed === "all" ? "*" : origin;
  const isAllowed = origin !== undefined && shown !== undefined && isAllowedOrigin(origin, allowed);
  response.setHeader("vary", "Origin");
  if (method === "OPTIONS" && asked !== undefined) {
    response.setHeader("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    if (isAllowed && METHODS.includes(asked.toUpperCase())) {
      response.setHeader("access-control-allow-origin", shown);
      response.setHeader("access-control-allow-methods", asked.toUpperCase());
      response.setHeader("access-control-max-age", MAX_AGE_SECONDS);
      const names = headers["access-control-request-headers"];
      if (names !== undefined) response.setHeader("access-control-allow-headers", names);
    }
    response.writeHead(204).end();
    return true;
  }
  if (isAllowed) {
    response.setHeader("access-control-allow-origin", shown);
    response.setHeader("access-control-expose-headers", EXPOSED);
  }
  return false;
}

/** A page that may not use these paths, also where its own name was made to lead here (DNS rebinding): browsers say where a page is from. */
export function refuseOrigin({ headers: { origin } }: HttpRequest, allowed: Allowed): Refusal | undefined {
  if (origin === undefined || isAllowedOrigin(origin, allowed)) return undefined;
  return { code: Code.PermissionDenied, message: "pages of this origin may not use this path", status: 403 };
}

function isAllowedOrigin(origin: string, allowed: Allowed): boolean {
  return allowed === "all" || allowed.includes(origin);
}
