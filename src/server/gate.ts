import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { HttpRoutes, RouteMatch } from "../api/http-route.js";
import type { Authenticator } from "../auth/authenticator.js";
import { describeRequirement, fulfils, type Requirement } from "../auth/scopes.js";
import type { SignedUrls } from "../auth/signed-urls.js";
import type { Tickets } from "../auth/tickets.js";
import { bearerToken } from "../auth/token.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import { ANYBODY, ANYBODY_INSECURELY, type Call, type Caller, DAEMON_TOKEN } from "../call.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Realm, Refusal, Verdict } from "../refusal.js";
import { cleanPath, decodeUrlPath } from "../url-path.js";
import type { CallsInProgress } from "./calls-in-progress.js";
import type { GrpcMethod } from "./grpc/methods.js";
import { pathOf } from "./guard.js";
import type { HttpRequest } from "./http-types.js";
import { refuseOtherInstance } from "./instance.js";
import { queryOf } from "./plain-http.js";
import type { Upgrade } from "./upgrade.js";

export interface RequestHandling {
  /** Of this run of the daemon. */
  readonly instanceId: string;
  readonly rpcs: ReadonlyMap<string, UniversalHandler>;
  /** The same RPCs, for the lane of gRPC over HTTP/2. */
  readonly grpcMethods: ReadonlyMap<string, GrpcMethod>;
  /** What each RPC asks of its caller, by path. */
  readonly requirements: ReadonlyMap<string, Requirement>;
  readonly plainRoutes: HttpRoutes;
  readonly tickets: Tickets;
  readonly realms: readonly Realm[];
  readonly signedUrls: SignedUrls;
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  /** Knows all other tokens and certificates; undefined: there are none, or nobody is asked. */
  readonly authenticator: Authenticator | undefined;
  readonly readiness: Readiness;
  readonly calls: CallsInProgress;
  /** Ends what plain HTTP is still answering. */
  readonly shutdownSignal: AbortSignal;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export function realmOf({ realms }: RequestHandling, request: HttpRequest): Realm | undefined {
  return realms.find(({ covers }) => covers(request.method ?? "", pathOf(request) ?? ""));
}

/** The gate: nothing of the body has been read yet. */
export function judge(
  handling: RequestHandling,
  request: HttpRequest,
  call: Call,
  realm: Realm | undefined,
  upgrade: Upgrade | undefined,
): Refusal | undefined | Promise<Refusal | undefined> {
  const path = pathOf(request);
  if (path === undefined) return { code: Code.InvalidArgument, message: "invalid request target: it is not a path", status: 400 };
  const required = handling.requirements.get(path);
  const plain = required === undefined ? handling.plainRoutes.find(request.method ?? "", path) : undefined;
  call.procedure = isMatch(plain) ? `${plain.route.method} ${plain.route.path}` : path;
  const requirement = required ?? (isMatch(plain) ? plain.route.requires : undefined);
  if (requirement === "public" || (requirement === undefined && handling.plainRoutes.isPublic(path))) {
    call.caller = ANYBODY;
    return refuseForNow(handling, request, call);
  }
  const verdict = identify(handling, request, realm, upgrade, plain);
  if (verdict instanceof Promise) return verdict.then((settled) => settle(handling, request, call, requirement, settled));
  return settle(handling, request, call, requirement, verdict);
}

/** Where a request shows who sends it: its token first, then what its path takes besides, then the certificate of its connection. */
function identify(
  handling: RequestHandling,
  request: HttpRequest,
  realm: Realm | undefined,
  upgrade: Upgrade | undefined,
  plain: RouteMatch | readonly string[] | undefined,
): Verdict | Promise<Verdict> {
  const { verifier, authenticator } = handling;
  const { authorization } = request.headers;
  if (verifier?.verify(authorization)) return { caller: DAEMON_TOKEN };
  const token = authenticator === undefined ? undefined : bearerToken(authorization);
  const known = token === undefined ? undefined : authenticator?.identify(token);
  if (known instanceof Promise) {
    // AgentCube's tokens are JWTs, too, and others know them.
    return known.then((verdict) => ("caller" in verdict ? verdict : (askRealm(handling, request, realm) ?? verdict)));
  }
  if (known !== undefined && "caller" in known) return known;
  const ofConnection = showsToken(authorization) ? undefined : authenticator?.identifyConnection(request.socket);
  if (ofConnection !== undefined && "caller" in ofConnection) return ofConnection;
  const ofRealm = askRealm(handling, request, realm);
  if (ofRealm !== undefined) return ofRealm;
  if (verifier === undefined) return { caller: ANYBODY_INSECURELY };
  return redeem(handling, request, upgrade, plain) ?? known ?? ofConnection ?? NO_TOKEN;
}

/** A name alone, as E2B's clients send it to say who acts, proves nothing and is meant to prove nothing. */
function showsToken(authorization: string | undefined): boolean {
  return authorization !== undefined && !/^basic /i.test(authorization);
}

const NO_TOKEN: Verdict = {
  refusal: {
    code: Code.Unauthenticated,
    message: "missing or wrong access token: expected the header Authorization: Bearer <token>",
    status: 401,
    headers: { "www-authenticate": "Bearer" },
  },
};

function askRealm(
  { verifier, authenticator }: RequestHandling,
  request: HttpRequest,
  realm: Realm | undefined,
): Verdict | Promise<Verdict> | undefined {
  return realm?.judge(request, {
    open: verifier === undefined,
    identify: (token) => (verifier?.verify(`Bearer ${token}`) ? { caller: DAEMON_TOKEN } : authenticator?.identify(token)),
    current: (caller) => authenticator?.current(caller) ?? { caller },
  });
}

/** Whoever has asked for the ticket, or signed the address, that a request carries. */
function redeem(
  { tickets, signedUrls, authenticator }: RequestHandling,
  request: HttpRequest,
  upgrade: Upgrade | undefined,
  plain: RouteMatch | readonly string[] | undefined,
): Verdict | undefined {
  const owner = upgrade === undefined ? undefined : tickets.redeem(queryOf(request).get("ticket") ?? "");
  if (owner !== undefined) return { caller: owner };
  const signer = isMatch(plain) ? signerOf(signedUrls, plain, request) : undefined;
  if (signer === undefined) return undefined;
  const now = authenticator?.current(signer) ?? { caller: signer };
  if ("refusal" in now) return now;
  const { name, scopes, pathPrefixes = signer.pathPrefixes } = now.caller;
  const both = new Set([...signer.scopes].filter((scope) => scopes.has(scope)));
  return { caller: { name, how: "signature", scopes: both, ...(pathPrefixes === undefined ? {} : { pathPrefixes }) } };
}

/** @param requirement undefined: nothing is there, and whoever is known is told so. */
function settle(
  handling: RequestHandling,
  request: HttpRequest,
  call: Call,
  requirement: Requirement | undefined,
  verdict: Verdict,
): Refusal | undefined {
  if ("refusal" in verdict) return verdict.refusal;
  const { caller } = verdict;
  call.caller = caller;
  if (requirement !== undefined && !fulfils(caller.scopes, requirement)) return scopeMissing(call.procedure, caller, requirement);
  return refuseForNow(handling, request, call);
}

/** RFC 6750: the token is good, for other things. */
function scopeMissing(procedure: string, { name }: Caller, requirement: Requirement): Refusal {
  const message = `${procedure} needs the scope ${describeRequirement(requirement)}, which ${name} does not have`;
  const scope = requirement === "files" ? "files:read files:write" : requirement;
  const headers = { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` };
  return { code: Code.PermissionDenied, message, status: 403, reason: "SCOPE_MISSING", headers };
}

/** Why one who may come in is not let in all the same. */
function refuseForNow({ instanceId, readiness }: RequestHandling, request: HttpRequest, call: Call): Refusal | undefined {
  const refusal = refuseOtherInstance(request, instanceId);
  if (refusal !== undefined) return refusal;
  // Connections outlive the listener, and new calls would outlive the time that the others are given.
  if (readiness.ready || call.caller?.how === "public") return undefined;
  return { code: Code.Unavailable, message: "the daemon is shutting down", status: 503, reason: "SHUTTING_DOWN" };
}

function signerOf(signedUrls: SignedUrls, { route, parameters }: RouteMatch, request: HttpRequest): Caller | undefined {
  const query = queryOf(request);
  if (!route.isSignable || !query.has("signature")) return undefined;
  const path = tryDecode(parameters.path ?? "");
  if (path === undefined) return undefined;
  return signedUrls.redeem({ method: request.method ?? "", path: cleanPath(path), user: query.get("user") ?? "" }, query);
}

function tryDecode(path: string): string | undefined {
  try {
    return decodeUrlPath(path);
  } catch {
    return undefined;
  }
}

export function isMatch(found: RouteMatch | readonly string[] | undefined): found is RouteMatch {
  return found !== undefined && "route" in found;
}
