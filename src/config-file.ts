import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { ConfigError } from "./auth/token.js";
import { describeErrno, errnoName } from "./os/system-error.js";

/** How often files are looked at that may be replaced while the daemon runs. */
export const WATCH_INTERVAL_MS = 1_000;

export interface ConfigFile {
  readonly text: string;
  /** Others than owner and group can read it. */
  readonly worldReadable: boolean;
  /** They can write it. */
  readonly worldWritable: boolean;
  /** Changes whenever the file, or what its name leads to, is another. */
  readonly version: string;
}

/**
 * Reads a file that somebody has configured. @param what for the message: "the access token".
 * @throws ConfigError naming the file and why it cannot be used: missing, unreadable, not a regular file, too large.
 */
export function readConfigFile(path: string, what: string, maxBytes: number): ConfigFile {
  try {
    return read(path, what, maxBytes);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const why = describeErrno(error as NodeJS.ErrnoException);
    throw new ConfigError(`cannot read ${what} from file ${path}: ${why}`, { cause: error });
  }
}

function read(path: string, what: string, maxBytes: number): ConfigFile {
  // Without blocking: the path may be a FIFO.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (!stats.isFile()) throw new ConfigError(`cannot read ${what} from file ${path}: it is not a regular file`);
    const buffer = Buffer.alloc(maxBytes + 1);
    const length = readSync(fd, buffer);
    if (length > maxBytes) throw new ConfigError(`${what} from file ${path} is larger than ${maxBytes} bytes`);
    const text = buffer.toString("utf8", 0, length);
    const may = (mode: bigint) => (stats.mode & mode) !== 0n;
    return { text, worldReadable: may(0o004n), worldWritable: may(0o002n), version: describeVersion(stats) };
  } finally {
    closeSync(fd);
  }
}

/**
 * Looks every `intervalMs` whether one of the files has been replaced, starting from the versions that are in force. It asks for the file
 * behind the name, because Kubernetes rotates a secret by swapping a symbolic link that no watch on the file would see. A change counts when
 * two looks see the same: whoever rewrites the files in place has finished then. Returns the function that stops it.
 */
export function watchConfigFiles(
  paths: readonly string[],
  inForce: string,
  intervalMs: number,
  onChange: () => void,
): () => void {
  let known = inForce;
  let seen = inForce;
  const timer = setInterval(() => {
    const version = versionOf(paths);
    const settled = version === seen;
    seen = version;
    if (!settled || version === known) return;
    known = version;
    onChange();
  }, intervalMs).unref();
  return () => clearInterval(timer);
}

/** Of files as they are now; of one that cannot be looked at, why. */
export function versionOf(paths: readonly string[]): string {
  return paths.map(versionOfOne).join(" ");
}

function versionOfOne(path: string): string {
  try {
    return describeVersion(statSync(path, { bigint: true }));
  } catch (error) {
    return errnoName(error) ?? String(error);
  }
}

function describeVersion({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
