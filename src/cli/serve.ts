import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync } from "node:fs";
import { resolveUser } from "../acting-user.js";
import { createAgentCubeRealm } from "../api/agentcube/realm.js";
import { createEnvdRealm } from "../api/envd/realm.js";
import { EnvdState } from "../api/envd/state.js";
import { registerServices } from "../api/routes.js";
import { JwtVerifier } from "../auth/jwt.js";
import { noTokenError, resolveToken, type TokenSources } from "../auth/resolve-token.js";
import { watchTokenFile } from "../auth/token-file.js";
import { TokenVerifier } from "../auth/token-verifier.js";
import { type Config, invalidValue } from "../config.js";
import { createLogger, type Logger } from "../logger.js";
import { createMetrics } from "../metrics.js";
import { spareSelfWhenOutOfMemory } from "../os/out-of-memory.js";
import { closeInheritedDescriptorsOnExec, makeUndumpable } from "../os/self.js";
import { describeErrno } from "../os/system-error.js";
import { Readiness } from "../readiness.js";
import { createSandbox, type Sandbox } from "../sandbox.js";
import { createServer, type Server } from "../server/create-server.js";
import { exitOnFatalError, exitOnSignals, shutDownOnSignals } from "../shutdown.js";
import { version } from "../version.js";

const DEFAULT_TOKEN_FILE = "/etc/picod/token";
const METADATA_LIMITS = { attemptTimeoutMs: 1_000, attempts: 3, retryDelayMs: 250 };
const TOKEN_FILE_INTERVAL_MS = 1_000;
const TOKEN_OVERLAP_MS = 30_000;

/** The token as flag and environment had it, before both were scrubbed. */
export type GivenToken = Pick<TokenSources, "flag" | "environment">;

/** Starts the daemon; signals end it. @throws ConfigError; an error that names the address when it cannot listen there. */
export async function serve(config: Config, given: GivenToken, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  closeInheritedDescriptorsOnExec();
  makeUndumpable();
  spareSelfWhenOutOfMemory();
  const stopExiting = exitOnSignals();
  const logger = await createLogger(config);
  const { verifier, source } = await createVerifier(config, given, logger);

  const { authPublicKey } = config;
  const jwtVerifier = authPublicKey === undefined ? undefined : new JwtVerifier(authPublicKey, config.jwtAudience);
  const sandbox = createConfiguredSandbox(config, env);
  const envd = config.noEnvd ? undefined : new EnvdState(config.envdUser);
  const isDaemonToken = (token: string) => verifier?.verify(`Bearer ${token}`) ?? false;
  const realms = [
    createAgentCubeRealm(jwtVerifier),
    ...(envd === undefined ? [] : [createEnvdRealm({ state: envd, users: sandbox.users, isDaemonToken })]),
  ];
  exitOnFatalError({ sandbox, logger });
  const readiness = new Readiness();
  const metrics = createMetrics(version, () => sandbox.processes.size);
  const server = createServer({
    config,
    sandbox,
    envd,
    readiness,
    metrics,
    logger,
    verifier,
    realms,
    registerServices: (register) => registerServices(register, sandbox, readiness, envd),
  });
  const port = await listen(server, config.host, config.port);
  const alsoListening = await listenElsewhere(server, config, logger);
  const { shutdownGraceMs: graceMs, killGraceMs } = config;
  shutDownOnSignals({ server, sandbox, readiness, logger, graceMs, killGraceMs });
  stopExiting();
  const line = { host: config.host, port, ...alsoListening, version, tokenSource: source, pid: process.pid };
  logger.info(line, "server listening");
}

/** @throws ConfigError for what would make every call fail: a root, user or shell that does not exist. */
function createConfiguredSandbox(config: Config, env: Readonly<Record<string, string | undefined>>): Sandbox {
  const { root, shell, user, envdUser } = config;
  try {
    if (config.sandboxd) mkdirSync(root, { recursive: true });
    if (root !== "/") accessSync(`${root}/.`);
  } catch (error) {
    throw invalidValue("root", `${root}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
  try {
    if (shell !== undefined) accessSync(shell, constants.X_OK);
  } catch (error) {
    throw invalidValue("shell", `${shell}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
  const sandbox = createSandbox(config, env);
  try {
    if (user !== undefined) resolveUser(sandbox.users, user);
  } catch (error) {
    throw invalidValue("user", (error as Error).message);
  }
  try {
    if (envdUser !== undefined && !config.noEnvd) resolveUser(sandbox.users, envdUser);
  } catch (error) {
    throw invalidValue("envdUser", (error as Error).message);
  }
  return sandbox;
}

async function listen(server: Server, host: string, port: number, trusted = false): Promise<number> {
  try {
    return await server.listen(host, port, trusted);
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
  for (const { host, port, trusted } of alsoListen) {
    const address = `${host.includes(":") ? `[${host}]` : host}:${await listen(server, host, port, trusted)}`;
    if (trusted) logger.warn({ address }, "no token is asked for on this address: everybody who reaches it has the sandbox");
    alsoListening.push(address);
  }
  return alsoListening.length === 0 ? {} : { alsoListening };
}

interface Verifying {
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  readonly source: string;
}

async function createVerifier(config: Config, given: GivenToken, logger: Logger): Promise<Verifying> {
  const { metadataUrl, metadataFlavor } = config;
  const sources: TokenSources = {
    ...given,
    file: config.accessTokenFile,
    defaultFile: DEFAULT_TOKEN_FILE,
    metadataService: metadataUrl === undefined ? undefined : { url: metadataUrl, flavor: metadataFlavor, ...METADATA_LIMITS },
  };
  const token = await resolveToken(sources, (message) => logger.warn(message));
  if (token === undefined && config.authPublicKey !== undefined && !config.insecureNoAuth) {
    logger.warn("running without an access token: only AgentCube's JWTs are taken, and only below /api/");
    return { verifier: new TokenVerifier(randomBytes(32).toString("hex")), source: "none" };
  }
  if (token === undefined) {
    if (!config.insecureNoAuth) throw noTokenError(DEFAULT_TOKEN_FILE);
    logger.warn("running without an access token: everybody who reaches the port has the sandbox");
    return { verifier: undefined, source: "none" };
  }
  const verifier = new TokenVerifier(token.value);
  const { file, source } = token;
  if (file !== undefined) {
    watchTokenFile(file.path, file.version, TOKEN_FILE_INTERVAL_MS, {
      onToken(rotated) {
        if (!verifier.rotate(rotated, TOKEN_OVERLAP_MS)) return;
        logger.info({ tokenSource: source, overlapMs: TOKEN_OVERLAP_MS }, "access token rotated");
      },
      onError: (error) => logger.error({ err: error }, "cannot read the rotated access token; the present one stays in force"),
    });
  }
  return { verifier, source };
}
