import { Code } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { type HttpRoutes, isMatch } from "../api/http-route.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Authenticator } from "../auth/authenticator.js";
import { describeRequirement, fulfils, type Requirement } from "../auth/scopes.js";
import type { SignedUrls } from "../auth/signed-urls.js";
import type { Tickets } from "../auth/tickets.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import { ANYBODY, type Call, type Caller } from "../call.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Policy } from "../policy/policy.js";
import type { Readiness } from "../readiness.js";
import type { Realm, Refusal, Verdict } from "../refusal.js";
import type { Tracer } from "../telemetry/tracer.js";
import { admit } from "./admit.js";
import type { CallsInProgress } from "./calls-in-progress.js";
import type { GrpcMethod } from "./grpc/methods.js";
import { pathOf } from "./guard.js";
import type { HttpRequest } from "./http-types.js";
import { identify } from "./identify.js";
import { refuseOtherInstance } from "./instance.js";
import type { RpcLookup } from "./rpc-services.js";
import type { Upgrade } from "./upgrade.js";

export interface RequestHandling {
  /** Of this run of the daemon. */
  readonly instanceId: string;
  readonly rpcs: RpcLookup<UniversalHandler>;
  /** The same RPCs, for the lane of gRPC over HTTP/2. */
  readonly grpcMethods: RpcLookup<GrpcMethod>;
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
  /** Undefined: whoever has the scope may do all that it is for. */
  readonly policy: Policy | undefined;
  readonly readiness: Readiness;
  readonly calls: CallsInProgress;
  /** Ends what plain HTTP is still answering. */
  readonly shutdownSignal: AbortSignal;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Undefined: none is kept. */
  readonly audit: AuditLog | undefined;
  /** Undefined: traces are only passed on. */
  readonly tracer: Tracer | undefined;
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
  const refusal = admit(handling.policy, call, caller, requirement);
  if (refusal !== undefined) return refusal;
  return refuseForNow(handling, request, call);
}

/** RFC 6750: the token is good, for other things. */
function scopeMissing(procedure: string, { name }: Caller, requirement: Requirement): Refusal {
  const message = `${procedure} needs the scope ${describeRequirement(requirement)}, which ${name} does not have`;
  const scope = describeRequirement(requirement).replaceAll(" or ", " ");
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
