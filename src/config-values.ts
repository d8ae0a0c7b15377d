import { PathGlob } from "./policy/path-glob.js";

/** An address of `--also-listen`. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Whoever reaches it is let in. */
  readonly trusted: boolean;
  /** No TLS there, whatever the others speak. */
  readonly cleartext: boolean;
}

/* Each throws an Error whose message completes "invalid value for …: ". */

export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new Error(`${quote(text)} is not a whole number from ${min} to ${max}`);
    return value;
  };
}

const parsePort = integerBetween(0, 65535);

export function port(text: string): number {
  // What Kubernetes puts into every container's environment when a Service of the namespace is called "picod".
  if (text.startsWith("tcp://")) {
    throw new Error(`${quote(text)} is the address of a Service: set enableServiceLinks: false in the pod, or call it otherwise`);
  }
  return parsePort(text);
}

/** "127.0.0.1:8080", "[::1]:8080", "127.0.0.1:8080,no-auth,no-tls". */
export function listenAddresses(text: string): ListenAddress[] {
  const [, ipv6, other, number, options = ""] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:,[\]]+)):(\d+)((?:,no-auth|,no-tls)*)$/.exec(text) ?? [];
  if (number === undefined)
    throw new Error(`${quote(text)} is not of the form address:port, with ,no-auth or ,no-tls behind it or both`);
  const said = options.split(",");
  return [
    { host: ipv6 ?? other ?? "", port: parsePort(number), trusted: said.includes("no-auth"), cleartext: said.includes("no-tls") },
  ];
}

const MS_OF_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** "500ms", "10s", "5m", "1h"; a bare number is seconds. */
export function duration(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const value = Number(number) * (MS_OF_UNIT[unit ?? "s"] ?? Number.NaN);
  if (!Number.isFinite(value) || value > 2 ** 31 - 1)
    throw new Error(`${quote(text)} is not a duration such as 500ms, 10s, 5m or 1h (at most 24 days)`);
  return Math.round(value);
}

/** The same, and more than none. */
export function positiveDuration(text: string): number {
  const ms = duration(text);
  if (ms === 0) throw new Error(`${quote(text)} is no time at all`);
  return ms;
}

const BYTES_OF_UNIT: Readonly<Record<string, number>> = { "": 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** "1048576", "512KiB", "2MiB". */
export function bytesBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const [, number, unit] = /^(\d+)(KiB|MiB|GiB|)$/.exec(text) ?? [];
    const value = Number(number) * (BYTES_OF_UNIT[unit ?? ""] ?? Number.NaN);
    if (!(value >= min && value <= max))
      throw new Error(`${quote(text)} is not a size such as 65536, 512KiB or 2MiB, from ${min} to ${max} bytes`);
    return value;
  };
}

export function oneOf<const T extends string>(...allowed: T[]): (text: string) => T {
  return (text) => {
    const found = allowed.find((value) => value === text);
    if (found === undefined) throw new Error(`${quote(text)} is none of ${allowed.join(", ")}`);
    return found;
  };
}

export function boolean(text: string): boolean {
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new Error(`${quote(text)} is neither true nor false`);
}

export function notEmpty(text: string): string {
  if (text === "") throw new Error("it is empty");
  return text;
}

export function absolutePath(text: string): string {
  if (!text.startsWith("/") || text.includes("\0")) throw new Error(`${quote(text)} is not an absolute path`);
  return text;
}

/** A glob of absolute paths, as policies have it. */
export function pathGlob(text: string): string[] {
  try {
    new PathGlob(text, "/");
  } catch (error) {
    throw new Error(`${quote(text)} is no glob of absolute paths: ${(error as Error).message}`);
  }
  return [text];
}

export function httpUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new Error(`${quote(text)} is not an http:// URL`);
  // It is logged, and repeated in errors.
  if (url.username !== "" || url.password !== "") throw new Error("a user name or password in the URL is not supported");
  return text;
}

/** As browsers name one: scheme, host, and a port that is not the scheme's own. */
export function webOrigin(text: string): string[] {
  if (URL.parse(text)?.origin !== text || !/^https?:/.test(text))
    throw new Error(`${quote(text)} is not an origin such as https://example.org`);
  return [text];
}

export function assignment(text: string): Record<string, string> {
  const separator = text.indexOf("=");
  if (separator < 1) throw new Error(`${quote(text)} is not of the form NAME=value`);
  return { [text.slice(0, separator)]: text.slice(separator + 1) };
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
