import { lstatSync } from "node:fs";
import { errnoName } from "../os/system-error.js";
import { fetchMetadataToken, type MetadataServiceOptions } from "./metadata-service.js";
import { ConfigError, parseToken, type Token } from "./token.js";
import { readTokenFile } from "./token-file.js";

/** The five places, in the order of precedence; undefined means not configured, which is different from empty. */
export interface TokenSources {
  /** `--access-token` */
  readonly flag: string | undefined;
  /** `PICOD_ACCESS_TOKEN` */
  readonly environment: string | undefined;
  /** `--access-token-file`, `PICOD_ACCESS_TOKEN_FILE` */
  readonly file: string | undefined;
  /** `/etc/picod/token`; counts as configured when it exists. */
  readonly defaultFile: string;
  readonly metadataService: MetadataServiceOptions | undefined;
}

/**
 * The first source that is configured wins. @returns undefined when none is. @throws ConfigError when that one cannot be used: a
 * broken source never falls through to the next, which would silently accept another token.
 */
export async function resolveToken(sources: TokenSources, warn: (message: string) => void): Promise<Token | undefined> {
  if (sources.flag !== undefined) return { value: parseToken(sources.flag, "--access-token"), source: "--access-token" };
  if (sources.environment !== undefined) {
    return { value: parseToken(sources.environment, "PICOD_ACCESS_TOKEN"), source: "PICOD_ACCESS_TOKEN" };
  }
  if (sources.file !== undefined) return fromFile(sources.file, warn);
  if (isPresent(sources.defaultFile)) return fromFile(sources.defaultFile, warn);
  if (sources.metadataService === undefined) return undefined;
  const { url } = sources.metadataService;
  return { value: await fetchMetadataToken(sources.metadataService), source: `metadata service ${url}` };
}

/** For the refusal to start. */
export function noTokenError(defaultFile: string): ConfigError {
  return new ConfigError(
    [
      "no access token: give one by",
      "  1. the flag --access-token (visible to other processes until the daemon has started)",
      "  2. the environment variable PICOD_ACCESS_TOKEN",
      "  3. the file named by PICOD_ACCESS_TOKEN_FILE (or --access-token-file)",
      `  4. the file ${defaultFile}`,
      "  5. a metadata service, named by --metadata-url (or PICOD_METADATA_URL)",
      "or let everybody in with --insecure-no-auth",
    ].join("\n"),
  );
}

function fromFile(path: string, warn: (message: string) => void): Token {
  const { token, worldReadable, version } = readTokenFile(path);
  if (worldReadable) warn(`the access token file ${path} is readable by every user of the sandbox: chmod 600 it`);
  return { value: token, source: `file ${path}`, file: { path, version } };
}

/** Something that is there but cannot be looked at is present: reading it will say why it cannot be used. */
function isPresent(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return !["ENOENT", "ENOTDIR"].includes(errnoName(error) ?? "");
  }
}
