import { Code, ConnectError } from "@connectrpc/connect";
import type { EnvdState } from "../api/envd/state.js";
import { HttpRoutes } from "../api/http-route.js";
import type { RegisterService } from "../api/routes.js";
import type { AuditLog } from "../audit/audit-log.js";
import type { Authenticator } from "../auth/authenticator.js";
import type { Requirement } from "../auth/scopes.js";
import { Tickets } from "../auth/tickets.js";
import type { TokenVerifier } from "../auth/token-verifier.js";
import type { Config } from "../config.js";
import type { ListenAddress } from "../config-values.js";
import { createInterceptors } from "../interceptors/index.js";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import type { Policy } from "../policy/policy.js";
import type { Readiness } from "../readiness.js";
import type { Realm } from "../refusal.js";
import type { Sandbox } from "../sandbox.js";
import type { Tracer } from "../telemetry/tracer.js";
import type { CallsInProgress } from "./calls-in-progress.js";
import type { RequestHandling } from "./gate.js";
import { createGrpcLane } from "./grpc/lane.js";
import { createRequestHandler } from "./handle-request.js";
import { IdleMemory } from "./idle-memory.js";
import { TICKET_LIFETIME_MS } from "./limits.js";
import { createListener, type Listener } from "./listener.js";
import { createPlainRoutes } from "./plain-routes.js";
import { RpcServices } from "./rpc-services.js";
import { createSubcallRunner } from "./run-subcall.js";
import { watchCalls } from "./stall-log.js";
import type { Tls } from "./tls.js";

/** Between two things that could wait, so that calls come in between. */
const SETTLING_STEP_MS = 50;

export interface Server {
  /** Listens on one more address. Resolves with the port in use, also when 0 was asked for. @throws EADDRINUSE, EACCES, … */
  listen(address: ListenAddress): Promise<number>;
  /** Does what could wait until the daemon answers, and gives back the memory that the start has left. */
  settle(): void;
  /** Takes no new connections. */
  stopAccepting(): void;
  /** Resolves when no call is at work; after `abortCalls`, also none that follows something or needed no token. */
  idle(): Promise<void>;
  /** Answers the calls that are still in progress with UNAVAILABLE. */
  abortCalls(): void;
  /** After `stopAccepting`: resolves when the HTTP/2 connections have closed. */
  closed(): Promise<void>;
  /** Closes every connection. */
  destroy(): void;
}

export interface ServerParts {
  readonly config: Config;
  readonly sandbox: Sandbox;
  /** Undefined: E2B's clients are not served. */
  readonly envd: EnvdState | undefined;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Undefined: none is kept. */
  readonly audit: AuditLog | undefined;
  /** Undefined: traces are only passed on. */
  readonly tracer: Tracer | undefined;
  /** Of this run of the daemon. */
  readonly instanceId: string;
  readonly verifier: TokenVerifier | undefined;
  /** Undefined: nobody has a token of their own. */
  readonly authenticator: Authenticator | undefined;
  /** Undefined: whoever has the scope may do all that it is for. */
  readonly policy: Policy | undefined;
  readonly realms: readonly Realm[];
  /** Undefined: no address speaks TLS. */
  readonly tls: Tls | undefined;
  /** Adds every RPC service. */
  readonly registerServices: (register: RegisterService) => void;
}

/** gRPC, gRPC-Web, Connect and plain HTTP, all of it on every address. */
export function createServer(parts: ServerParts): Server {
  const shutdown = new AbortController();
  const { sandbox, envd, readiness, metrics, config, logger, instanceId } = parts;
  const memory: IdleMemory = new IdleMemory(() => calls.isAtWork);
  const calls = watchCalls({
    thresholdMs: config.stallThresholdMs,
    liveProcesses: () => sandbox.processes.size,
    metrics,
    logger,
    onCall: () => memory.wake(),
  });
  const tickets = new Tickets(TICKET_LIFETIME_MS);
  const runSubcall = createSubcallRunner({ calls, metrics, logger, audit: parts.audit });
  const plainRoutes = new HttpRoutes(
    createPlainRoutes({ sandbox, envd, readiness, metrics, tickets, config, instanceId, runSubcall }),
  );
  const requirements = new Map<string, Requirement>();
  const interceptors = createInterceptors(metrics, requirements, parts.audit, parts.tracer !== undefined);
  const options = { interceptors, readMaxBytes: config.maxMessageBytes, shutdownSignal: shutdown.signal };
  const services = new RpcServices(requirements, options);
  parts.registerServices((name, required, offer) => services.register(name, required, offer));
  const handling = createHandling(parts, plainRoutes, tickets, calls, shutdown.signal, services);
  const listeners: Listener[] = [];
  return {
    listen({ host, port, trusted, cleartext }) {
      const asTrusted = trusted ? { ...handling, verifier: undefined, authenticator: undefined } : handling;
      const listener = createListener(
        createRequestHandler(asTrusted),
        createGrpcLane(asTrusted),
        plainRoutes,
        cleartext ? undefined : parts.tls,
        logger,
      );
      listeners.push(listener);
      return listener.listen(host, port);
    },
    settle() {
      const steps = [metrics.collectNodes, ...services.makeUsual, () => memory.started()];
      for (const [index, step] of steps.entries()) setTimeout(step, SETTLING_STEP_MS * (index + 1)).unref();
    },
    stopAccepting() {
      for (const listener of listeners) listener.stopAccepting();
    },
    idle: () => calls.idle(shutdown.signal.aborted ? ["working", "following", "public"] : ["working"]),
    abortCalls: () => shutdown.abort(new ConnectError("the daemon is shutting down", Code.Unavailable)),
    async closed() {
      await Promise.all(listeners.map((listener) => listener.closed()));
    },
    destroy() {
      for (const listener of listeners) listener.destroy();
    },
  };
}

function createHandling(
  parts: ServerParts,
  plainRoutes: HttpRoutes,
  tickets: Tickets,
  calls: CallsInProgress,
  shutdownSignal: AbortSignal,
  services: RpcServices,
): RequestHandling {
  const { instanceId, sandbox, readiness, metrics, logger, audit, tracer, verifier, authenticator, policy, realms } = parts;
  return {
    instanceId,
    realms,
    rpcs: services.handlers,
    grpcMethods: services.grpcMethods,
    requirements: services.requirements,
    plainRoutes,
    tickets,
    signedUrls: sandbox.signedUrls,
    verifier,
    authenticator,
    policy,
    readiness,
    calls,
    shutdownSignal,
    metrics,
    logger,
    audit,
    tracer,
  };
}
