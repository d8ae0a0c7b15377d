import { randomBytes } from "node:crypto";
import { Authenticator } from "../auth/authenticator.js";
import { ClientCertificates } from "../auth/client-certificates.js";
import { JwtCallers } from "../auth/jwt-callers.js";
import { type JwtKeyFile, readJwtKeys } from "../auth/jwt-keys.js";
import { KnownCallers } from "../auth/known-callers.js";
import { noTokenError, resolveToken, type TokenSources } from "../auth/resolve-token.js";
import { readScopesFile } from "../auth/scopes-file.js";
import { watchTokenFile } from "../auth/token-file.js";
import { TokenVerifier } from "../auth/token-verifier.js";
import type { Caller } from "../call.js";
import { type Config, invalidValue } from "../config.js";
import { versionOf, WATCH_INTERVAL_MS, watchConfigFiles } from "../config-file.js";
import type { Logger } from "../logger.js";
import type { Policy } from "../policy/policy.js";

const DEFAULT_TOKEN_FILE = "/etc/picod/token";
const METADATA_LIMITS = { attemptTimeoutMs: 1_000, attempts: 3, retryDelayMs: 250 };
const TOKEN_OVERLAP_MS = 30_000;

/** The token as flag and environment had it, before both were scrubbed. */
export type GivenToken = Pick<TokenSources, "flag" | "environment">;

export interface Authentication {
  /** Undefined: everybody may come in. */
  readonly verifier: TokenVerifier | undefined;
  /** Undefined: the daemon's own token is the only one. */
  readonly authenticator: Authenticator | undefined;
  /** Whom the scopes file names; undefined: there is none. */
  readonly known: KnownCallers | undefined;
  /** Of the daemon's own token. */
  readonly source: string;
}

/** @throws ConfigError for what is configured and cannot be used, and when nobody could come in. */
export async function createAuthentication(
  config: Config,
  given: GivenToken,
  policy: Policy | undefined,
  logger: Logger,
): Promise<Authentication> {
  const { verifier, source } = await createVerifier(config, given, logger);
  const known = config.scopesFile === undefined ? undefined : knowCallers(config, config.scopesFile, policy, logger);
  const jwts = await knowJwts(config, logger);
  const certificates = config.tlsClientCa === undefined ? undefined : new ClientCertificates();
  // Where everybody may come in there is nobody to be told from others.
  const isAlone = verifier === undefined || (known === undefined && jwts === undefined && certificates === undefined);
  return { verifier, source, known, authenticator: isAlone ? undefined : new Authenticator(known, jwts, certificates) };
}

async function createVerifier(
  config: Config,
  given: GivenToken,
  logger: Logger,
): Promise<Pick<Authentication, "verifier" | "source">> {
  const { metadataUrl, metadataFlavor } = config;
  const sources: TokenSources = {
    ...given,
    file: config.accessTokenFile,
    defaultFile: DEFAULT_TOKEN_FILE,
    metadataService: metadataUrl === undefined ? undefined : { url: metadataUrl, flavor: metadataFlavor, ...METADATA_LIMITS },
  };
  const token = await resolveToken(sources, (message) => logger.warn(message));
  if (token === undefined && !config.insecureNoAuth) {
    const others = whoElse(config);
    if (others === undefined) throw noTokenError(DEFAULT_TOKEN_FILE);
    logger.warn(`running without an access token: only ${others}`);
    return { verifier: new TokenVerifier(randomBytes(32).toString("hex")), source: "none" };
  }
  if (token === undefined) {
    logger.warn("running without an access token: everybody who reaches the port has the sandbox");
    return { verifier: undefined, source: "none" };
  }
  const verifier = new TokenVerifier(token.value);
  const { file, source } = token;
  if (file !== undefined) {
    watchTokenFile(file.path, file.version, WATCH_INTERVAL_MS, {
      onToken(rotated) {
        if (!verifier.rotate(rotated, TOKEN_OVERLAP_MS)) return;
        logger.info({ tokenSource: source, overlapMs: TOKEN_OVERLAP_MS }, "access token rotated");
      },
      onError: (error) => logger.error({ err: error }, "cannot read the rotated access token; the present one stays in force"),
    });
  }
  return { verifier, source };
}

/** Who may come in without the daemon's own token. Undefined: nobody. */
function whoElse({ authPublicKey, scopesFile, jwtPublicKey, jwksFile }: Config): string | undefined {
  if (scopesFile !== undefined || jwtPublicKey !== undefined || jwksFile !== undefined)
    return "the callers of the scopes file and JWTs come in";
  return authPublicKey === undefined ? undefined : "AgentCube's JWTs are taken, and only below /api/";
}

function knowCallers(config: Config, path: string, policy: Policy | undefined, logger: Logger): KnownCallers {
  const read = () => {
    const { callers, worldReadable } = readScopesFile(path);
    if (worldReadable) logger.warn(`the scopes file ${path} is readable by every user of the sandbox: chmod 600 it`);
    const certified = callers.find(({ certificate }) => certificate !== undefined);
    if (certified !== undefined && config.tlsClientCa === undefined) {
      throw invalidValue("scopesFile", `${certified.caller.name} is known by a certificate, and --tls-client-ca is missing`);
    }
    for (const { caller } of callers) assertCapability(caller, policy);
    const without = policy === undefined ? [] : callers.filter(({ caller }) => caller.capabilityName === undefined);
    if (without.length > 0) {
      const names = without.map(({ caller }) => caller.name).join(", ");
      logger.warn(`without a capability they may do nothing while there is a policy: ${names}`);
    }
    return callers;
  };
  const version = versionOf([path]);
  const callers = read();
  const known = new KnownCallers(callers);
  logger.info({ scopesFile: path, callers: callers.length }, "scopes file read");
  watchConfigFiles([path], version, WATCH_INTERVAL_MS, () => {
    try {
      const changed = read();
      known.replace(changed);
      logger.info({ scopesFile: path, callers: changed.length }, "scopes file read again");
    } catch (error) {
      logger.error({ err: error }, "cannot use the changed scopes file; what it said before stays in force");
    }
  });
  return known;
}

/** @throws ConfigError for one that the policy does not have. */
function assertCapability({ name, capabilityName }: Caller, policy: Policy | undefined): void {
  if (capabilityName === undefined || policy?.has(capabilityName)) return;
  const why = policy === undefined ? "--policy is missing" : "the policy has none of that name";
  throw invalidValue("scopesFile", `${name} has the capability ${JSON.stringify(capabilityName)}, and ${why}`);
}

async function knowJwts(config: Config, logger: Logger): Promise<JwtCallers | undefined> {
  const { jwtPublicKey, jwksFile, jwtAudience } = config;
  const path = jwtPublicKey ?? jwksFile;
  if (path === undefined || jwtAudience === undefined) return undefined;
  const file: JwtKeyFile = { path, kind: jwtPublicKey === undefined ? "jwks" : "pem" };
  const version = versionOf([path]);
  const jwts = new JwtCallers(await readJwtKeys(file), jwtAudience);
  logger.info({ jwtKeys: path, jwtAudience }, "keys of JWTs read");
  watchConfigFiles([path], version, WATCH_INTERVAL_MS, () => {
    readJwtKeys(file).then(
      (keys) => {
        jwts.replaceKeys(keys);
        logger.info({ jwtKeys: path }, "keys of JWTs read again");
      },
      (error: unknown) => logger.error({ err: error }, "cannot use the changed keys of JWTs; the present ones stay in force"),
    );
  });
  return jwts;
}
