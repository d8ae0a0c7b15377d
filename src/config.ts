import type { KeyObject } from "node:crypto";
import { parseRsaPublicKey } from "./auth/jwt.js";
import type { MetadataFlavor } from "./auth/metadata-service.js";
import { ConfigError } from "./auth/token.js";
import {
  absolutePath,
  assignment,
  boolean,
  bytesBetween,
  duration,
  httpUrl,
  integerBetween,
  type ListenAddress,
  listenAddresses,
  notEmpty,
  oneOf,
  pathGlob,
  port,
  positiveDuration,
  webOrigin,
} from "./config-values.js";

/** One setting: a flag, the environment variable of the same meaning, and what its text means. The flag wins. */
interface Setting<T> {
  /** As commander takes it: `--port <number>`; without a value it is a switch. */
  readonly flag: string;
  readonly env: string;
  readonly description: string;
  /** Applies when neither is given. */
  readonly default: T;
  /** As the help shows it; "" shows nothing. */
  readonly defaultText: string;
  /** The flag may be given several times; the variable holds one value a line. */
  readonly repeatable: boolean;
  /** An empty variable is a value like any other, not "not set". */
  readonly emptyCounts: boolean;
  /** @throws Error whose message completes "invalid value for …: ". */
  readonly parse: (text: string) => T;
  readonly merge: (all: readonly T[]) => T;
}

type SettingInput<T> = Pick<Setting<T>, "flag" | "env" | "description" | "default" | "parse"> & Partial<Setting<T>>;

function setting<T>(input: SettingInput<T>): Setting<T> {
  const defaultText = input.default === undefined || typeof input.default === "boolean" ? "" : String(input.default);
  return { defaultText, repeatable: false, emptyCounts: false, merge: (all) => all.at(-1) ?? input.default, ...input };
}

/** The one flag that is not a setting: the token itself never becomes part of the configuration, see auth/resolve-token.ts. */
export const ACCESS_TOKEN = {
  flag: "--access-token <token>",
  env: "PICOD_ACCESS_TOKEN",
  description: "the token that callers must present; prefer the variable or a file",
};

const DEFAULT_BLOCKED_PATHS = [
  ...["/etc/passwd", "/etc/shadow", "/root"],
  ...["environ", "mem"].flatMap((name) => [`/proc/*/${name}`, `/proc/*/task/*/${name}`]),
];

/** Every other flag, variable, default, range and unit of the daemon. The README's table is checked against these. */
export const SETTINGS = {
  port: setting({
    flag: "--port <number>",
    env: "PICOD_PORT",
    description: "TCP port for gRPC, gRPC-Web, Connect and plain HTTP; 0 takes a free one",
    default: 49983,
    parse: port,
  }),
  host: setting({
    flag: "--host <address>",
    env: "PICOD_HOST",
    description: "address to listen on",
    default: "0.0.0.0",
    parse: notEmpty,
  }),
  accessTokenFile: setting<string | undefined>({
    flag: "--access-token-file <path>",
    env: "PICOD_ACCESS_TOKEN_FILE",
    description: "file that holds the token; read again when it changes",
    default: undefined,
    // Passing over it would let the next source decide who may come in.
    emptyCounts: true,
    parse: absolutePath,
  }),
  tlsCert: setting<string | undefined>({
    flag: "--tls-cert <path>",
    env: "PICOD_TLS_CERT",
    description:
      "certificate chain (PEM) of the daemon: with it the port speaks TLS and nothing else; read again when it changes",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  tlsKey: setting<string | undefined>({
    flag: "--tls-key <path>",
    env: "PICOD_TLS_KEY",
    description: "private key (PEM) of --tls-cert",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  tlsClientCa: setting<string | undefined>({
    flag: "--tls-client-ca <path>",
    env: "PICOD_TLS_CLIENT_CA",
    description: "certificate authorities (PEM) of client certificates, whose names the scopes file gives scopes",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  tlsClientCrl: setting<string | undefined>({
    flag: "--tls-client-crl <path>",
    env: "PICOD_TLS_CLIENT_CRL",
    description:
      "revocation lists (PEM), one of every authority above a client certificate, without which it does not count; read again when they change",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  metadataUrl: setting<string | undefined>({
    flag: "--metadata-url <url>",
    env: "PICOD_METADATA_URL",
    description: "metadata service that answers with the token, asked when no other source is configured",
    default: undefined,
    parse: httpUrl,
  }),
  metadataFlavor: setting<MetadataFlavor>({
    flag: "--metadata-flavor <name>",
    env: "PICOD_METADATA_FLAVOR",
    description: "what the metadata service expects: plain, imdsv2 (session token first), gcp or azure",
    default: "plain",
    parse: oneOf("plain", "imdsv2", "gcp", "azure"),
  }),
  alsoListen: setting<readonly ListenAddress[]>({
    flag: "--also-listen <address:port>",
    env: "PICOD_ALSO_LISTEN",
    description:
      "one more address that serves the same (repeatable; one a line in the variable); with `,no-auth` behind it nobody is asked for a token there, on loopback alone unless --insecure-no-auth is given; with `,no-tls` it speaks cleartext, on loopback alone",
    default: [],
    defaultText: "",
    repeatable: true,
    parse: listenAddresses,
    merge: (all) => all.flat(),
  }),
  sandboxd: setting({
    flag: "--sandboxd",
    env: "PICOD_SANDBOXD",
    description:
      "stand in for sandboxd of Kubernetes agent-sandbox: also listen on its ports, 8080 and 9090 of --host (without asking for a token if --insecure-no-auth is given), and --root /workspace, made when it is missing",
    default: false,
    parse: boolean,
  }),
  metadataEnvPrefix: setting({
    flag: "--metadata-env-prefix <prefix>",
    env: "PICOD_METADATA_ENV_PREFIX",
    description: "which of the daemon's environment variables GET /v1/metadata shows; none whose name looks like a secret's",
    default: "SANDBOX_",
    parse: notEmpty,
  }),
  noEnvd: setting({
    flag: "--no-envd",
    env: "PICOD_NO_ENVD",
    description: "do not answer E2B's clients: no process.Process, filesystem.Filesystem, /files, /envs and /init",
    default: false,
    parse: boolean,
  }),
  envdUser: setting<string | undefined>({
    flag: "--envd-user <name>",
    env: "PICOD_ENVD_USER",
    description: "user that E2B's clients act as unless a request names one; default: `user` when there is one, else --user",
    default: undefined,
    parse: notEmpty,
  }),
  authPublicKey: setting<KeyObject | undefined>({
    flag: "--auth-public-key <pem>",
    env: "PICOD_AUTH_PUBLIC_KEY",
    description: "RSA public key (PEM) of AgentCube's router: its JWTs open the routes below /api/",
    default: undefined,
    // Passing over it would lock its owner out without a word.
    emptyCounts: true,
    parse: parseRsaPublicKey,
  }),
  scopesFile: setting<string | undefined>({
    flag: "--scopes-file <path>",
    env: "PICOD_SCOPES_FILE",
    description: "JSON that names further tokens and client certificates, and what each may do; read again when it changes",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  policy: setting<string | undefined>({
    flag: "--policy <path>",
    env: "PICOD_POLICY",
    description:
      "TOML that says which files, commands and hosts each caller may use, docs/policy.md; all others may use none; read again when it changes",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  jwtPublicKey: setting<string | undefined>({
    flag: "--jwt-public-key <path>",
    env: "PICOD_JWT_PUBLIC_KEY",
    description:
      "public key (PEM; RS256, ES256 or EdDSA) that JWTs are verified with, whose claim `scope` says what they may do; read again when it changes",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  jwksFile: setting<string | undefined>({
    flag: "--jwks-file <path>",
    env: "PICOD_JWKS_FILE",
    description: "the same, as a set of keys (JWKS)",
    default: undefined,
    emptyCounts: true,
    parse: absolutePath,
  }),
  jwtAudience: setting<string | undefined>({
    flag: "--jwt-audience <name>",
    env: "PICOD_JWT_AUDIENCE",
    description:
      "what a JWT must name as its audience, so that one for another sandbox is refused; obligatory with --jwt-public-key and --jwks-file, else by default not looked at",
    default: undefined,
    parse: notEmpty,
  }),
  workspace: setting<string | undefined>({
    flag: "--workspace <directory>",
    env: "PICOD_WORKSPACE",
    description:
      "the directory that AgentCube's routes below /api/ are confined to, made when it is missing; default: --root, else --workdir, else the default user's home directory",
    default: undefined,
    parse: absolutePath,
  }),
  insecureNoAuth: setting({
    flag: "--insecure-no-auth",
    env: "PICOD_INSECURE_NO_AUTH",
    description: "start without a token and let everybody in; with one, allow `no-auth` on every address",
    default: false,
    parse: boolean,
  }),
  root: setting({
    flag: "--root <directory>",
    env: "PICOD_ROOT",
    description: "confine file operations to this directory (commands are not confined)",
    default: "/",
    parse: absolutePath,
  }),
  workdir: setting<string | undefined>({
    flag: "--workdir <directory>",
    env: "PICOD_WORKDIR",
    description: "where commands run and relative paths start; default: the acting user's home directory",
    default: undefined,
    parse: absolutePath,
  }),
  user: setting<string | undefined>({
    flag: "--user <name>",
    env: "PICOD_USER",
    description: "user that commands and file operations act as unless a request names one; default: the daemon's own",
    default: undefined,
    parse: notEmpty,
  }),
  env: setting<Readonly<Record<string, string>>>({
    flag: "--env <NAME=value>",
    env: "PICOD_ENV",
    description: "variable for every command (repeatable; one a line in the variable)",
    default: {},
    defaultText: "",
    repeatable: true,
    parse: assignment,
    merge: (all) => Object.assign({}, ...all),
  }),
  shell: setting<string | undefined>({
    flag: "--shell <path>",
    env: "PICOD_SHELL",
    description: "shell that runs command strings; default: /bin/bash, else /bin/sh",
    default: undefined,
    parse: absolutePath,
  }),
  defaultTimeoutMs: setting({
    flag: "--default-timeout <duration>",
    env: "PICOD_DEFAULT_TIMEOUT",
    description: "how long a command may run when the request does not say; 0 is no limit",
    default: 30_000,
    defaultText: "30s",
    parse: duration,
  }),
  killGraceMs: setting({
    flag: "--kill-grace <duration>",
    env: "PICOD_KILL_GRACE",
    description: "between TERM and KILL when a command is ended",
    default: 2_000,
    defaultText: "2s",
    parse: duration,
  }),
  shutdownGraceMs: setting({
    flag: "--shutdown-grace <duration>",
    env: "PICOD_SHUTDOWN_GRACE",
    description: "how long calls may go on after TERM or INT",
    default: 10_000,
    defaultText: "10s",
    parse: duration,
  }),
  maxProcesses: setting({
    flag: "--max-processes <number>",
    env: "PICOD_MAX_PROCESSES",
    description: "commands that may run at once",
    default: 512,
    parse: integerBetween(1, 100_000),
  }),
  maxOutputBytes: setting({
    flag: "--max-output-bytes <size>",
    env: "PICOD_MAX_OUTPUT_BYTES",
    description: "output kept per stream of an Execute; two full streams must fit into the 4 MiB that gRPC clients accept",
    default: 2 * 1024 * 1024 - 4096,
    parse: bytesBetween(0, 64 * 1024 * 1024),
  }),
  maxMessageBytes: setting({
    flag: "--max-message-bytes <size>",
    env: "PICOD_MAX_MESSAGE_BYTES",
    description: "largest request message; streams carry any amount in many",
    default: 4 * 1024 * 1024,
    defaultText: "4MiB",
    parse: bytesBetween(1024, 1024 * 1024 * 1024),
  }),
  metricsPublic: setting({
    flag: "--metrics-public",
    env: "PICOD_METRICS_PUBLIC",
    description: "serve /metrics without a token",
    default: false,
    parse: boolean,
  }),
  imageName: setting({
    flag: "--image-name <name>",
    env: "PICOD_IMAGE_NAME",
    description: "what the sandbox is, for agents that ask for it by name over MCP; another name is refused",
    default: "default",
    parse: notEmpty,
  }),
  sessionDir: setting<string | undefined>({
    flag: "--session-dir <directory>",
    env: "PICOD_SESSION_DIR",
    description:
      "where sessions of MCP have their working directories; default: `.sandbox-sessions` in the caller's first path prefix, else in --root or --workdir, else in the default user's home directory",
    default: undefined,
    parse: absolutePath,
  }),
  sessionIdleTimeoutMs: setting({
    flag: "--session-idle-timeout <duration>",
    env: "PICOD_SESSION_IDLE_TIMEOUT",
    description: "how long a session of MCP may be without a call, before it ends with its processes",
    default: 30 * 60_000,
    defaultText: "30m",
    parse: positiveDuration,
  }),
  sessionMaxLifetimeMs: setting({
    flag: "--session-max-lifetime <duration>",
    env: "PICOD_SESSION_MAX_LIFETIME",
    description: "how long a session of MCP may last at all",
    default: 4 * 60 * 60_000,
    defaultText: "4h",
    parse: positiveDuration,
  }),
  mcpMaxFileSizeBytes: setting({
    flag: "--mcp-max-file-size <size>",
    env: "PICOD_MCP_MAX_FILE_SIZE",
    description: "largest file that MCP's tools write, and most that they read of one at once",
    default: 10 * 1024 * 1024,
    defaultText: "10MiB",
    parse: bytesBetween(1, 128 * 1024 * 1024),
  }),
  mcpMaxFiles: setting({
    flag: "--mcp-max-files <number>",
    env: "PICOD_MCP_MAX_FILES",
    description: "files that one session of MCP may make with its tools",
    default: 100,
    parse: integerBetween(0, 1_000_000),
  }),
  mcpTimeoutMs: setting({
    flag: "--mcp-timeout <duration>",
    env: "PICOD_MCP_TIMEOUT",
    description: "how long a command of MCP may run, and runs when it does not say",
    default: 300_000,
    defaultText: "300s",
    parse: positiveDuration,
  }),
  mcpBlockedPaths: setting<readonly string[]>({
    flag: "--mcp-blocked-paths <glob>",
    env: "PICOD_MCP_BLOCKED_PATHS",
    description:
      "paths that MCP's file tools may not open, with all that is below, instead of the default (repeatable; one a line in the variable); the files that hold the daemon's own secrets are always among them",
    default: DEFAULT_BLOCKED_PATHS,
    defaultText: DEFAULT_BLOCKED_PATHS.join(" "),
    repeatable: true,
    parse: pathGlob,
    merge: (all) => all.flat(),
  }),
  mcpAllowedOrigins: setting<readonly string[]>({
    flag: "--mcp-allow-origin <origin>",
    env: "PICOD_MCP_ALLOW_ORIGIN",
    description:
      "origin, such as http://localhost:6274, whose pages may use /mcp (repeatable; one a line in the variable); default: no page may",
    default: [],
    defaultText: "",
    repeatable: true,
    parse: webOrigin,
    merge: (all) => all.flat(),
  }),
  terminalPage: setting({
    flag: "--terminal-page",
    env: "PICOD_TERMINAL_PAGE",
    description: "serve a terminal for browsers on /terminal; the page asks for the token",
    default: false,
    parse: boolean,
  }),
  auditLog: setting<string | undefined>({
    flag: "--audit-log <path>",
    env: "PICOD_AUDIT_LOG",
    description: "file that gets a line of JSON for every call: who, what, how it ended; opened anew on SIGHUP",
    default: undefined,
    parse: absolutePath,
  }),
  auditCommands: setting({
    flag: "--audit-commands",
    env: "PICOD_AUDIT_COMMANDS",
    description: "show commands in the audit log; without it, their SHA-256 alone",
    default: false,
    parse: boolean,
  }),
  auditLogMaxBytes: setting({
    flag: "--audit-log-max-bytes <size>",
    env: "PICOD_AUDIT_LOG_MAX_BYTES",
    description: "size at which the audit log becomes <path>.1 and begins anew; 0 is never",
    default: 64 * 1024 * 1024,
    defaultText: "64MiB",
    parse: bytesBetween(0, 2 ** 40),
  }),
  auditLogFiles: setting({
    flag: "--audit-log-files <number>",
    env: "PICOD_AUDIT_LOG_FILES",
    description: "how many full audit logs are kept: <path>.1, the newest, to <path>.N",
    default: 5,
    parse: integerBetween(1, 1000),
  }),
  stallThresholdMs: setting({
    flag: "--stall-threshold <duration>",
    env: "PICOD_STALL_THRESHOLD",
    description: "log which calls ran when the event loop was held up for so long; 0 is never",
    default: 500,
    defaultText: "500ms",
    parse: duration,
  }),
  traceCommands: setting({
    flag: "--trace-commands",
    env: "PICOD_TRACE_COMMANDS",
    description: "show command lines in the traces that OTEL_EXPORTER_OTLP_ENDPOINT asks for",
    default: false,
    parse: boolean,
  }),
  logLevel: setting({
    flag: "--log-level <level>",
    env: "PICOD_LOG_LEVEL",
    description: "trace, debug, info, warn, error, fatal or silent",
    default: "info" as LogLevel,
    parse: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
  }),
  logFormat: setting({
    flag: "--log-format <format>",
    env: "PICOD_LOG_FORMAT",
    description: "json, pretty, or auto: pretty on a terminal",
    default: "auto" as LogFormat,
    parse: oneOf("auto", "json", "pretty"),
  }),
};

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
export type LogFormat = "auto" | "json" | "pretty";
export type SettingName = keyof typeof SETTINGS;

/** Complete and final: nothing behind this has defaults of its own. Durations in milliseconds, sizes in bytes. */
export type Config = { readonly [Name in SettingName]: (typeof SETTINGS)[Name]["default"] };

/** What commander saw: the text of each flag that was given, in order; a switch has "true". */
export type RawFlags = Partial<Record<SettingName, readonly string[]>>;

/** @throws ConfigError naming flag and variable of the first bad value. */
export function loadConfig(flags: RawFlags, env: Readonly<Record<string, string | undefined>>): Config {
  const values = Object.entries(SETTINGS).map(([name, entry]) => [
    name,
    resolve(name as SettingName, entry as Setting<unknown>, flags, env),
  ]);
  const config = Object.fromEntries(values) as Config;
  const rootIsGiven = flags.root !== undefined || (env[SETTINGS.root.env] ?? "") !== "";
  return Object.freeze(assertTrusted(config.sandboxd ? asSandboxd(config, rootIsGiven) : config));
}

const SANDBOXD_PORTS = [8080, 9090];
const SANDBOXD_ROOT = "/workspace";

function asSandboxd(config: Config, rootIsGiven: boolean): Config {
  const customary = SANDBOXD_PORTS.map((each) => ({
    host: config.host,
    port: each,
    trusted: config.insecureNoAuth,
    cleartext: false,
  }));
  return { ...config, alsoListen: [...customary, ...config.alsoListen], root: rootIsGiven ? config.root : SANDBOXD_ROOT };
}

const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

/** Of the daemon's own, which `picod healthcheck` need not know. @throws ConfigError for what does not go together. */
export function assertComplete(config: Config): void {
  const { jwtPublicKey, jwksFile, jwtAudience, tlsClientCa, tlsClientCrl, tlsCert, tlsKey } = config;
  if (jwtPublicKey !== undefined && jwksFile !== undefined)
    throw invalidValue("jwksFile", "--jwt-public-key is given too: one of them says whose JWTs count");
  if ((jwtPublicKey ?? jwksFile) !== undefined && jwtAudience === undefined) {
    const name = jwtPublicKey === undefined ? "jwksFile" : "jwtPublicKey";
    throw invalidValue(name, "--jwt-audience is missing: a JWT for another sandbox would be let in here");
  }
  if (tlsCert !== undefined && tlsKey === undefined) throw invalidValue("tlsCert", "--tls-key is missing");
  if (tlsKey !== undefined && tlsCert === undefined) throw invalidValue("tlsKey", "--tls-cert is missing");
  if (tlsClientCa !== undefined && tlsCert === undefined)
    throw invalidValue("tlsClientCa", "--tls-cert is missing: client certificates are shown over TLS alone");
  if (tlsClientCrl !== undefined && tlsClientCa === undefined)
    throw invalidValue("tlsClientCrl", "--tls-client-ca is missing: it says whose lists these are");
}

/** @throws ConfigError for an address that lets in whoever reaches it from elsewhere, or lets others on the way read along. */
function assertTrusted(config: Config): Config {
  const clear = config.alsoListen.find(({ host, cleartext }) => cleartext && !LOOPBACK.test(host));
  if (clear !== undefined) {
    throw invalidValue("alsoListen", `${clear.host}:${clear.port}: no-tls is for loopback alone, where nobody reads along`);
  }
  const open = config.alsoListen.find(({ host, trusted }) => trusted && !LOOPBACK.test(host));
  if (open === undefined || config.insecureNoAuth) return config;
  const why = `${open.host}:${open.port}: no-auth on an address that others reach needs --insecure-no-auth too`;
  throw invalidValue("alsoListen", why);
}

function resolve(
  name: SettingName,
  entry: Setting<unknown>,
  flags: RawFlags,
  env: Readonly<Record<string, string | undefined>>,
): unknown {
  const fromFlag = flags[name];
  const variable = env[entry.env];
  // An empty variable is how shells and manifests say "not set".
  const fromEnv = variable === undefined || (variable === "" && !entry.emptyCounts) ? [] : [variable];
  const texts = fromFlag ?? (entry.repeatable ? fromEnv.flatMap((text) => text.split("\n").filter(Boolean)) : fromEnv);
  if (texts.length === 0) return entry.default;
  try {
    return entry.merge(texts.map((text) => entry.parse(text)));
  } catch (error) {
    throw invalidValue(name, (error as Error).message, fromFlag !== undefined);
  }
}

/** The refusal to start with a value that was given, by the flag or by the variable. */
export function invalidValue(name: SettingName, why: string, byFlag = true): ConfigError {
  const { flag, env } = SETTINGS[name];
  const [long] = flag.split(" ");
  return new ConfigError(`invalid value for ${byFlag ? `${long} (variable ${env})` : `${env} (flag ${long})`}: ${why}`);
}
