import { accessSync, constants } from "node:fs";
import { resolveUser } from "../acting-user.js";
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

  const sandbox = createConfiguredSandbox(config, env);
  exitOnFatalError({ sandbox, logger });
  const readiness = new Readiness();
  const metrics = createMetrics(version, () => sandbox.processes.size);
  const server = createServer({ config, sandbox, readiness, metrics, logger, verifier });
  const port = await listen(server, config);
  const { shutdownGraceMs: graceMs, killGraceMs } = config;
  shutDownOnSignals({ server, sandbox, readiness, logger, graceMs, killGraceMs });
  stopExiting();
  logger.info({ host: config.host, port, version, tokenSource: source, pid: process.pid }, "server listening");
}

/** @throws ConfigError for what would make every call fail: a root, user or shell that does not exist. */
function createConfiguredSandbox(config: Config, env: Readonly<Record<string, string | undefined>>): Sandbox {
  const { root, shell, user } = config;
  try {
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
  return sandbox;
}

async function listen(server: Server, { host, port }: Config): Promise<number> {
  try {
    return await server.listen(host, port);
  } catch (error) {
    const why = describeErrno(error as NodeJS.ErrnoException);
    throw new Error(`cannot listen on ${host} port ${port}: ${why}`, { cause: error });
  }
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
