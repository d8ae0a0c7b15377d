import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { HttpRoutes, RouteMatch } from "../api/http-route.js";
import { isPublicPath, type PublicOptions } from "../auth/public-paths.js";
import type { SignedUrls } from "../auth/signed-urls.js";
import type { Tickets } from "../auth/tickets.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import { ANYBODY, ANYBODY_INSECURELY, type Call, type Caller, DAEMON_TOKEN } from "../call.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Readiness } from "../readiness.js";
import type { Realm, Refusal } from "../refusal.js";
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
  readonly plainRoutes: HttpRoutes;
  readonly tickets: Tickets;
  readonly realms: readonly Realm[];
  readonly signedUrls: SignedUrls;
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  readonly readiness: Readiness;
  readonly calls: CallsInProgress;
  readonly publicOptions: PublicOptions;
  /** Ends what plain HTTP is still answering. */
  readonly shutdownSignal: AbortSignal;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

const WITH_TICKET: Caller = { name: "ticket", how: "ticket" };
const WITH_SIGNED_URL: Caller = { name: "signed-url", how: "signature" };

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
  const plain = handling.rpcs.has(path) ? undefined : handling.plainRoutes.find(request.method ?? "", path);
  call.procedure = isMatch(plain) ? `${plain.route.method} ${plain.route.path}` : path;
  if (isPublicPath(path, handling.publicOptions)) call.caller = ANYBODY;
  else if (handling.verifier?.verify(request.headers.authorization)) call.caller = DAEMON_TOKEN;
  else if (realm !== undefined) return judgeInRealm(handling, request, call, realm);
  else if (handling.verifier === undefined) call.caller = ANYBODY_INSECURELY;
  else if (upgrade !== undefined && handling.tickets.redeem(queryOf(request).get("ticket") ?? "")) call.caller = WITH_TICKET;
  else if (isMatch(plain) && isSigned(handling.signedUrls, plain, request)) call.caller = WITH_SIGNED_URL;
  else {
    const message = "missing or wrong access token: expected the header Authorization: Bearer <token>";
    return { code: Code.Unauthenticated, message, status: 401, headers: { "www-authenticate": "Bearer" } };
  }
  return refuseForNow(handling, request, call);
}

async function judgeInRealm(
  handling: RequestHandling,
  request: HttpRequest,
  call: Call,
  realm: Realm,
): Promise<Refusal | undefined> {
  const verdict = await realm.judge(request, handling.verifier === undefined);
  if ("refusal" in verdict) return verdict.refusal;
  call.caller = verdict.caller;
  return refuseForNow(handling, request, call);
}

/** Why one who may come in is not let in all the same. */
function refuseForNow({ instanceId, readiness }: RequestHandling, request: HttpRequest, call: Call): Refusal | undefined {
  const refusal = refuseOtherInstance(request, instanceId);
  if (refusal !== undefined) return refusal;
  // Connections outlive the listener, and new calls would outlive the time that the others are given.
  if (readiness.ready || call.caller?.how === "public") return undefined;
  return { code: Code.Unavailable, message: "the daemon is shutting down", status: 503, reason: "SHUTTING_DOWN" };
}

/** Whether the address itself lets the request in. */
function isSigned(signedUrls: SignedUrls, { route, parameters }: RouteMatch, request: HttpRequest): boolean {
  const query = queryOf(request);
  if (!route.isSignable || !query.has("signature")) return false;
  const path = tryDecode(parameters.path ?? "");
  return (
    path !== undefined &&
    signedUrls.redeem({ method: request.method ?? "", path: cleanPath(path), user: query.get("user") ?? "" }, query)
  );
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
