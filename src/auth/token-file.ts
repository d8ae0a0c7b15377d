import { readConfigFile, watchConfigFiles } from "../config-file.js";
import { parseToken } from "./token.js";

const MAX_TOKEN_FILE_BYTES = 64 * 1024;

export interface TokenFile {
  readonly token: string;
  /** Others than owner and group can read it. */
  readonly worldReadable: boolean;
  /** Changes whenever the file, or what its name leads to, is another. */
  readonly version: string;
}

/** @throws ConfigError naming the file and why it cannot be used: missing, unreadable, not a regular file, too large, empty. */
export function readTokenFile(path: string): TokenFile {
  const { text, worldReadable, version } = readConfigFile(path, "the access token", MAX_TOKEN_FILE_BYTES);
  return { token: parseToken(text, `file ${path}`), worldReadable, version };
}

export interface TokenFileWatch {
  /** A new token is in the file. */
  readonly onToken: (token: string) => void;
  /** The file was changed and cannot be used; the token in force stays. */
  readonly onError: (error: unknown) => void;
}

/** Looks for a rotated token file every `intervalMs`. Returns the function that stops it. */
export function watchTokenFile(path: string, inForce: string, intervalMs: number, watch: TokenFileWatch): () => void {
  return watchConfigFiles([path], inForce, intervalMs, () => {
    try {
      watch.onToken(readTokenFile(path).token);
    } catch (error) {
      watch.onError(error);
    }
  });
}
