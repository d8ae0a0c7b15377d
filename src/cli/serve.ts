import { createAgentCubeRealm } from "../api/agentcube/realm.js";
import { createEnvdRealm } from "../api/envd/realm.js";
import { EnvdState } from "../api/envd/state.js";
import { createMcpRealm } from "../api/mcp/http/realm.js";
import { registerServices } from "../api/routes.js";
import { JwtVerifier } from "../auth/jwt.js";
import { assertComplete, type Config } from "../config.js";
import type { ListenAddress } from "../config-values.js";
import { createLogger, type Logger } from "../logger.js";
import { createMetrics } from "../metrics.js";
import { spareSelfWhenOutOfMemory } from "../os/out-of-memory.js";
import { closeInheritedDescriptorsOnExec, makeUndumpable } from "../os/self.js";
import { describeErrno } from "../os/system-error.js";
import { Readiness } from "../readiness.js";
import { createServer, type Server } from "../server/create-server.js";
import { newInstanceId } from "../server/instance.js";
import { exitOnFatalError, exitOnSignals, shutDownOnSignals } from "../shutdown.js";
import { loadTracer } from "../telemetry/tracer.js";
import { version } from "../version.js";
import { createAuditLog } from "./create-audit-log.js";
import { createAuthentication, type GivenToken } from "./create-authentication.js";
import { createConfiguredSandbox } from "./create-configured-sandbox.js";
import { createConfinement } from "./create-confinement.js";
import { createPolicy } from "./create-policy.js";
import { createTls } from "./create-tls.js";

/** Starts the daemon; signals end it. @throws ConfigError; an error that names the address when it cannot listen there. */
export async function serve(config: Config, given: GivenToken, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  closeInheritedDescriptorsOnExec();
  makeUndumpable();
  spareSelfWhenOutOfMemory();
  assertComplete(config);
  const stopExiting = exitOnSignals();
  const logger = await createLogger(config);
  const confinement = createConfinement(config, env, logger, () => audit);
  const loaded = await createPolicy(config, confinement, logger);
  const policy = loaded?.policy;
  const { verifier, authenticator, known, source } = await createAuthentication(config, given, policy, logger);
  loaded?.watch(known);

  const tls = createTls(config, logger);
  const { authPublicKey } = config;
  const jwtVerifier = authPublicKey === undefined ? undefined : new JwtVerifier(authPublicKey, config.jwtAudience);
  const sandbox = createConfiguredSandbox(config, env, confinement);
  const envd = config.noEnvd ? undefined : new EnvdState(config.envdUser);
  const realms = [
    createAgentCubeRealm(jwtVerifier),
    ...(envd === undefined ? [] : [createEnvdRealm({ state: envd, users: sandbox.users })]),
    createMcpRealm(config.mcpAllowedOrigins),
  ];
  const readiness = new Readiness();
  const metrics = createMetrics(version, () => sandbox.processes.size);
  const instanceId = newInstanceId();
  const tracer = loadTracer({
    version,
    instanceId,
    env,
    showsCommands: config.traceCommands,
    counts: metrics,
    warn: atMostOnceAMinute((message) => logger.warn(message)),
  });
  sandbox.processes.onEnd(({ reason }) => metrics.processEnded(reason));
  sandbox.processes.onOmitted((bytes) => metrics.outputTrimmed("result", bytes));
  sandbox.registry.onTrimmed((bytes) => metrics.outputTrimmed("follower", bytes));
  const audit = createAuditLog(config, metrics, logger);
  exitOnFatalError({ sandbox, logger, audit });
  const server = createServer({
    config,
    sandbox,
    envd,
    readiness,
    metrics,
    logger,
    audit,
    tracer,
    instanceId,
    verifier,
    authenticator,
    policy,
    realms,
    tls,
    registerServices: (register) => registerServices(register, sandbox, readiness, envd),
  });
  const port = await listen(server, { host: config.host, port: config.port, trusted: false, cleartext: false });
  const alsoListening = await listenElsewhere(server, config, logger);
  server.settle();
  const { shutdownGraceMs: graceMs, killGraceMs } = config;
  shutDownOnSignals({ server, sandbox, readiness, logger, audit, tracer, graceMs, killGraceMs });
  stopExiting();
  const line = {
    host: config.host,
    port,
    ...alsoListening,
    ...(tls === undefined ? {} : { tls: true }),
    version,
    tokenSource: source,
    pid: process.pid,
  };
  logger.info(line, "server listening");
}

async function listen(server: Server, listenAddress: ListenAddress): Promise<number> {
  const { host, port } = listenAddress;
  try {
    return await server.listen(listenAddress);
  } catch (error) {
    // The addresses before this one would keep the daemon alive.
    server.stopAccepting();
    server.destroy();
    const why = describeErrno(error as NodeJS.ErrnoException);
    throw new Error(`cannot listen on ${host} port ${port}: ${why}`, { cause: error });
  }
}

/** For the log: nothing when there are no further addresses. */
async function listenElsewhere(server: Server, { alsoListen }: Config, logger: Logger): Promise<{ alsoListening?: string[] }> {
  const alsoListening: string[] = [];
  for (const listenAddress of alsoListen) {
    const { host, trusted } = listenAddress;
    const address = `${host.includes(":") ? `[${host}]` : host}:${await listen(server, listenAddress)}`;
    if (trusted) logger.warn({ address }, "no token is asked for on this address: everybody who reaches it has the sandbox");
    alsoListening.push(address);
  }
  return alsoListening.length === 0 ? {} : { alsoListening };
}

function atMostOnceAMinute(warn: (message: string) => void): (message: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (message) => {
    if (performance.now() - warnedAt < 60_000) return;
    warnedAt = performance.now();
    warn(message);
  };
}
