import { readFileSync } from "node:fs";
import { openBridge } from "../api/mcp/stdio/open-bridge.js";
import { resolveToken } from "../auth/resolve-token.js";
import { ConfigError } from "../auth/token.js";
import type { Config } from "../config.js";
import { createLogger } from "../logger.js";
import { makeUndumpable } from "../os/self.js";
import { describeErrno } from "../os/system-error.js";
import type { GivenToken } from "./create-authentication.js";
import type { RemoteFlags } from "./program.js";

const EXIT_REFUSED = 1;

/**
 * Serves the tools of a daemon elsewhere over MCP on the standard streams, until the input ends or a signal comes. A daemon that is not there,
 * or refuses, ends it with 1. @throws ConfigError.
 */
export async function bridgeMcp(config: Config, given: GivenToken, remote: RemoteFlags): Promise<void> {
  makeUndumpable();
  const url = mcpUrl(remote.url);
  const logger = await createLogger(config, process.stderr);
  // The file where a daemon of this machine has its token is none for others.
  const sources = { ...given, file: config.accessTokenFile, defaultFile: "", metadataService: undefined };
  const token = await resolveToken(sources, (message) => logger.warn(message));
  const bridge = openBridge({
    url,
    headers: token === undefined ? {} : { authorization: `Bearer ${token.value}` },
    tls: readTls(remote),
    input: process.stdin,
    output: process.stdout,
    warn: (message) => logger.warn(message),
    onRefused(why) {
      process.stderr.write(`picod: ${why}\n`);
      end(EXIT_REFUSED);
    },
  });
  let isEnding = false;
  const end = (exitCode: number) => {
    if (isEnding) return;
    isEnding = true;
    void bridge.close().finally(() => process.exit(exitCode));
  };
  process.stdin.on("end", () => end(0)).on("error", () => end(0));
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => end(0));
  await bridge.start();
  logger.info({ url: url.href, tokenSource: token?.source }, "serving MCP of a daemon on the standard streams");
}

/** @param address with or without the path that is MCP's. */
function mcpUrl(address: string): URL {
  const url = URL.parse(address);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw new ConfigError(`invalid value for --url: ${address}: expected an address such as http://sandbox:49983`);
  }
  if (url.username !== "" || url.password !== "")
    throw new ConfigError("invalid value for --url: the token belongs in PICOD_ACCESS_TOKEN");
  if (!url.pathname.endsWith("/mcp")) url.pathname = `${url.pathname.replace(/\/$/, "")}/mcp`;
  return url;
}

function readTls(remote: RemoteFlags): { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } {
  if ((remote.cert === undefined) !== (remote.key === undefined)) throw new ConfigError("--cert and --key go together");
  const given = (["ca", "cert", "key"] as const).flatMap((name) => {
    const path = remote[name];
    return path === undefined ? [] : [[name, readPem(name, path)]];
  });
  return Object.fromEntries(given);
}

function readPem(name: string, path: string): Buffer {
  if (!path.startsWith("/")) throw new ConfigError(`invalid value for --${name}: ${path}: expected an absolute path`);
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigError(`invalid value for --${name}: ${path}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
}
