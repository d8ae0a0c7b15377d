import type { IncomingMessage } from "node:http";
import { Code } from "@connectrpc/connect";
import type { Scope } from "../../auth/scopes.js";
import { ANYBODY_INSECURELY, type Caller } from "../../call.js";
import type { UserDatabase } from "../../os/users.js";
import type { Realm, RealmGate, Refusal, Verdict } from "../../refusal.js";
import { basicUserName } from "./acting-user.js";
import { ENVD_FILESYSTEM, ENVD_PROCESS } from "./scopes.js";
import { isSameSecret } from "./secret.js";
import { malformed, signatureRefusal } from "./signed-file.js";
import type { EnvdState } from "./state.js";

const ROUTES = ["/files", "/files/compose", "/envs", "/init", "/health"];
/** Of both: E2B's once its token is set. */
const SHARED_ROUTE = "/metrics";
const SERVICES = [`/${ENVD_PROCESS}/`, `/${ENVD_FILESYSTEM}/`];
/** It shows its token in the body, and its handler looks at it. */
const INITIALISING: Caller = { name: "envd", how: "token", scopes: new Set<Scope>(["admin"]) };
const UNAUTHORIZED = "unauthorized access, please provide a valid access token or method signing if supported";

export interface EnvdRealmParts {
  readonly state: EnvdState;
  readonly users: UserDatabase;
}

/**
 * E2B's routes. Their token is set by /init; while there is none they are as open as the daemon is: with a token of its own only that one
 * lets anybody in, /init included.
 */
export function createEnvdRealm({ state, users }: EnvdRealmParts): Realm {
  function judgeToken(request: IncomingMessage, query: URLSearchParams, path: string, { open, identify, current }: RealmGate) {
    const given = request.headers["x-access-token"]?.toString() ?? "";
    const known = given === "" ? undefined : identify(given);
    return known ?? judgeOwnToken(request, given, query, path, { open, current });
  }

  function judgeOwnToken(
    request: IncomingMessage,
    given: string,
    query: URLSearchParams,
    path: string,
    { open, current }: Pick<RealmGate, "open" | "current">,
  ): Verdict {
    const { accessToken, tokenSetBy } = state;
    if (accessToken === undefined || tokenSetBy === undefined)
      return open ? { caller: ANYBODY_INSECURELY } : unauthorized(UNAUTHORIZED);
    const method = request.method ?? "";
    if (method === "POST" && path === "/init") {
      const { capabilityName } = tokenSetBy;
      return { caller: capabilityName === undefined ? INITIALISING : { ...INITIALISING, capabilityName } };
    }
    const isRight = given !== "" && isSameSecret(accessToken, given);
    // It opens what may be opened by whoever has set it.
    if (isRight) return inItsName(current(tokenSetBy), "token");
    if (!isFiles(method, path)) return unauthorized(UNAUTHORIZED);
    if (given !== "") return unauthorized("access token present in header but does not match");
    const why = signatureRefusal(query, method, accessToken, Date.now());
    return why === undefined ? inItsName(current(tokenSetBy), "signature") : unauthorized(why);
  }

  return {
    crossOrigin: "all",
    covers: (_method, path) =>
      ROUTES.includes(path) ||
      (path === SHARED_ROUTE && state.accessToken !== undefined) ||
      SERVICES.some((prefix) => path.startsWith(prefix)),
    async judge(request, gate) {
      const { path, query } = targetOf(request);
      const isClosed = state.accessToken === undefined && !gate.open;
      const why = isClosed || !isFiles(request.method ?? "", path) ? undefined : malformed(query);
      if (why !== undefined) return { refusal: { code: Code.InvalidArgument, message: why, status: 400, text: why } };
      const verdict = await judgeToken(request, query, path, gate);
      const refusal = "refusal" in verdict ? undefined : refusalOfUser(users, request);
      return refusal === undefined ? verdict : { refusal };
    },
  };
}

function inItsName(verdict: Verdict, how: "token" | "signature"): Verdict {
  return "refusal" in verdict ? verdict : { caller: { ...verdict.caller, name: "envd", how } };
}

/** The name of an unknown user is refused on every route. */
function refusalOfUser(users: UserDatabase, { headers }: IncomingMessage): Refusal | undefined {
  const named = basicUserName(headers.authorization ?? "");
  if (named === undefined || users.findNamed(named) !== undefined) return undefined;
  return { code: Code.Unauthenticated, message: `invalid username: '${named}'`, status: 401 };
}

function unauthorized(message: string): Verdict {
  const headers = { "x-content-type-options": "nosniff" };
  return { refusal: { code: Code.Unauthenticated, message, status: 401, headers, body: { code: 401, message } } };
}

const isFiles = (method: string, path: string) => path === "/files" && (method === "GET" || method === "POST");

function targetOf({ url = "" }: IncomingMessage): { path: string; query: URLSearchParams } {
  const at = url.indexOf("?");
  const path = at < 0 ? url : url.slice(0, at);
  return { path, query: new URLSearchParams(at < 0 ? "" : url.slice(at + 1)) };
}
