import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { describeErrno } from "../os/system-error.js";
import { ConfigError, parseToken } from "./token.js";

const MAX_TOKEN_FILE_BYTES = 64 * 1024;

export interface TokenFile {
  readonly token: string;
  /** Others than owner and group can read it. */
  readonly worldReadable: boolean;
}

/** @throws ConfigError naming the file and why it cannot be used: missing, unreadable, not a regular file, too large, empty. */
export function readTokenFile(path: string): TokenFile {
  const source = `file ${path}`;
  let fd: number;
  try {
    // Without blocking: the path may be a FIFO.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new ConfigError(`cannot read the access token from ${source}: ${describeErrno(error as NodeJS.ErrnoException)}`);
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new ConfigError(`cannot read the access token from ${source}: it is not a regular file`);
    const buffer = Buffer.alloc(MAX_TOKEN_FILE_BYTES + 1);
    const length = readSync(fd, buffer);
    if (length > MAX_TOKEN_FILE_BYTES)
      throw new ConfigError(`the access token from ${source} is larger than ${MAX_TOKEN_FILE_BYTES} bytes`);
    return { token: parseToken(buffer.toString("utf8", 0, length), source), worldReadable: (stats.mode & 0o004) !== 0 };
  } finally {
    closeSync(fd);
  }
}

export interface TokenFileWatch {
  /** A new token is in the file. */
  readonly onToken: (token: string) => void;
  /** The file was changed and cannot be used; the token in force stays. */
  readonly onError: (error: unknown) => void;
}

/**
 * Looks for a rotated token file every `intervalMs`. It asks for the file behind the name, because Kubernetes rotates a secret by
 * swapping a symbolic link that no watch on the file would see. Returns the function that stops it.
 */
export function watchTokenFile(path: string, intervalMs: number, watch: TokenFileWatch): () => void {
  let known = versionOf(path);
  const timer = setInterval(() => {
    const version = versionOf(path);
    if (version === known) return;
    known = version;
    try {
      watch.onToken(readTokenFile(path).token);
    } catch (error) {
      watch.onError(error);
    }
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

function versionOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
}
