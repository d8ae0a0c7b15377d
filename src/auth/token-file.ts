import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { describeErrno, errnoName } from "../os/system-error.js";
import { ConfigError, parseToken } from "./token.js";

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
  try {
    return read(path, `file ${path}`);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const why = describeErrno(error as NodeJS.ErrnoException);
    throw new ConfigError(`cannot read the access token from file ${path}: ${why}`, { cause: error });
  }
}

function read(path: string, source: string): TokenFile {
  // Without blocking: the path may be a FIFO.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isFile()) throw new ConfigError(`cannot read the access token from ${source}: it is not a regular file`);
    const buffer = Buffer.alloc(MAX_TOKEN_FILE_BYTES + 1);
    const length = readSync(fd, buffer);
    if (length > MAX_TOKEN_FILE_BYTES)
      throw new ConfigError(`the access token from ${source} is larger than ${MAX_TOKEN_FILE_BYTES} bytes`);
    const token = parseToken(buffer.toString("utf8", 0, length), source);
    return { token, worldReadable: (stats.mode & 0o004n) !== 0n, version: describeVersion(stats) };
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
 * Looks for a rotated token file every `intervalMs`, starting from the version that is in force. It asks for the file behind the
 * name, because Kubernetes rotates a secret by swapping a symbolic link that no watch on the file would see. A change counts when
 * two looks see the same: whoever rewrites the file in place has finished then. Returns the function that stops it.
 */
export function watchTokenFile(path: string, inForce: string, intervalMs: number, watch: TokenFileWatch): () => void {
  let known = inForce;
  let seen = inForce;
  const timer = setInterval(() => {
    const version = versionOf(path);
    const settled = version === seen;
    seen = version;
    if (!settled || version === known) return;
    known = version;
    try {
      const file = readTokenFile(path);
      known = file.version;
      watch.onToken(file.token);
    } catch (error) {
      watch.onError(error);
    }
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

/** Of a file that cannot be looked at, why. */
function versionOf(path: string): string {
  try {
    return describeVersion(statSync(path, { bigint: true }));
  } catch (error) {
    return errnoName(error) ?? String(error);
  }
}

function describeVersion({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
