import { noTokenError, resolveToken, type TokenSources } from "../auth/resolve-token.js";
import { watchTokenFile } from "../auth/token-file.js";
import { TokenVerifier } from "../auth/token-verifier.js";
import type { Config } from "../config.js";
import { createLogger, type Logger } from "../logger.js";
import { createMetrics } from "../metrics.js";
import { closeInheritedDescriptorsOnExec, makeUndumpable } from "../os/self.js";
import { Readiness } from "../readiness.js";
import { createSandbox } from "../sandbox.js";
import { createServer } from "../server/create-server.js";
import { shutDownOnSignals } from "../shutdown.js";
import { version } from "../version.js";

const DEFAULT_TOKEN_FILE = "/etc/picod/token";
const METADATA_LIMITS = { attemptTimeoutMs: 1_000, attempts: 3, retryDelayMs: 250 };
const TOKEN_FILE_INTERVAL_MS = 1_000;
const TOKEN_OVERLAP_MS = 30_000;

/** The token as flag and environment had it, before both were scrubbed. */
export type GivenToken = Pick<TokenSources, "flag" | "environment">;

/** Starts the daemon; signals end it. @throws ConfigError; the system error of listening or of `--root`. */
export async function serve(config: Config, given: GivenToken, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const logger = await createLogger(config);
  const { verifier, source } = await createVerifier(config, given, logger);
  closeInheritedDescriptorsOnExec();
  makeUndumpable();

  const sandbox = createSandbox(config, env);
  const readiness = new Readiness();
  const metrics = createMetrics(version, () => sandbox.processes.size);
  const server = createServer({ config, sandbox, readiness, metrics, logger, verifier });
  const port = await server.listen(config.host, config.port);
  shutDownOnSignals({ server, sandbox, readiness, logger, graceMs: config.shutdownGraceMs });
  logger.info({ host: config.host, port, version, tokenSource: source, pid: process.pid }, "server listening");
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
    watchTokenFile(file, TOKEN_FILE_INTERVAL_MS, {
      onToken(rotated) {
        verifier.rotate(rotated, TOKEN_OVERLAP_MS);
        logger.info({ tokenSource: source, overlapMs: TOKEN_OVERLAP_MS }, "access token rotated");
      },
      onError: (error) => logger.error({ err: error }, "cannot read the rotated access token; the present one stays in force"),
    });
  }
  return { verifier, source };
}
