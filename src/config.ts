import type { MetadataFlavor } from "./auth/metadata-service.js";
import { ConfigError } from "./auth/token.js";

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
  insecureNoAuth: setting({
    flag: "--insecure-no-auth",
    env: "PICOD_INSECURE_NO_AUTH",
    description: "start without a token and let everybody in",
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
  terminalPage: setting({
    flag: "--terminal-page",
    env: "PICOD_TERMINAL_PAGE",
    description: "serve a terminal for browsers on /terminal; the page asks for the token",
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
  return Object.freeze(Object.fromEntries(values) as Config);
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

function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Error(`${quote(text)} is not a whole number from ${min} to ${max}`);
    return value;
  };
}

const parsePort = integerBetween(0, 65535);

function port(text: string): number {
  // What Kubernetes puts into every container's environment when a Service of the namespace is called "picod".
  if (text.startsWith("tcp://")) {
    throw new Error(`${quote(text)} is the address of a Service: set enableServiceLinks: false in the pod, or call it otherwise`);
  }
  return parsePort(text);
}

const MS_OF_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** "500ms", "10s", "5m", "1h"; a bare number is seconds. */
function duration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const value = Number(number) * (MS_OF_UNIT[unit ?? "s"] ?? Number.NaN);
  if (!Number.isFinite(value) || value > 2 ** 31 - 1)
    throw new Error(`${quote(text)} is not a duration such as 500ms, 10s, 5m or 1h (at most 24 days)`);
  return Math.round(value);
}

const BYTES_OF_UNIT: Readonly<Record<string, number>> = { "": 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** "1048576", "512KiB", "2MiB". */
function bytesBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const [, number, unit] = /^(\d+)(KiB|MiB|GiB|)$/.exec(text) ?? [];
    const value = Number(number) * (BYTES_OF_UNIT[unit ?? ""] ?? Number.NaN);
    if (!(value >= min && value <= max))
      throw new Error(`${quote(text)} is not a size such as 65536, 512KiB or 2MiB, from ${min} to ${max} bytes`);
    return value;
  };
}

function oneOf<const T extends string>(...allowed: T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((value) => value === text);
    if (found === undefined) throw new Error(`${quote(text)} is none of ${allowed.join(", ")}`);
    return found;
  };
}

function boolean(text: string): boolean {
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new Error(`${quote(text)} is neither true nor false`);
}

function notEmpty(text: string): string {
  if (text === "") throw new Error("it is empty");
  return text;
}

function absolutePath(text: string): string {
  if (!text.startsWith("/") || text.includes("\0")) throw new Error(`${quote(text)} is not an absolute path`);
  return text;
}

function httpUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new Error(`${quote(text)} is not an http:// URL`);
  // It is logged, and repeated in errors.
  if (url.username !== "" || url.password !== "") throw new Error("a user name or password in the URL is not supported");
  return text;
}

function assignment(text: string): Record<string, string> {
  const separator = text.indexOf("=");
  if (separator < 1) throw new Error(`${quote(text)} is not of the form NAME=value`);
  return { [text.slice(0, separator)]: text.slice(separator + 1) };
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
