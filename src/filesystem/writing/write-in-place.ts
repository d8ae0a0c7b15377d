import { close, closeSync, constants, fstatSync, openSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { posix } from "node:path";
import { changeOwner, readXattrs, removeXattr, setXattr } from "../../os/attributes.js";
import { withFileRightsOf } from "../../os/credentials.js";
import { O_PATH } from "../../os/root.js";
import { errnoName, systemError, withPath } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { assertFileSize } from "./file-size-limit.js";
import { openDirectoryMakingParents } from "./make-parents.js";
import { writeAll, writeAllNow } from "./write-all.js";

const WRITE = constants.O_WRONLY | constants.O_TRUNC | constants.O_NONBLOCK | constants.O_NOCTTY;
const NEW_FILE_MODE = 0o644;
/** So much is written at once instead of on a thread. */
const INLINE_BYTES = 64 * 1024;
const UNSUPPORTED = ["ENOTSUP", "EOPNOTSUPP"];

/**
 * Writes a file where it is, and empties it first: for clients that count what a watch tells of it. One that exists is given to the
 * owner before, keeping its mode; a new one after. Missing parents are made, and stay. What came before an error stays as well.
 */
export class InPlaceWriter {
  readonly #access: Access;
  readonly #path: string;
  readonly #fd: number;
  /** Whether it was there before, and has been emptied. */
  readonly replaces: boolean;
  /** Whether parents were missing. */
  readonly madeParents: boolean;
  #position = 0;

  /** @throws EISDIR, errno of open(2), mkdir(2), chown(2). */
  constructor(access: Access, path: string) {
    this.#access = access;
    this.#path = path;
    const made: string[] = [];
    [this.#fd, this.replaces] = this.#do(() => open(access, path, made));
    this.madeParents = made.length > 0;
  }

  /** Takes one chunk, which is one write; it may be reused when the promise has settled. @throws errno of write(2). */
  async write(chunk: Uint8Array): Promise<void> {
    assertFileSize(this.#access.root.guard, this.#path, this.#position + chunk.length);
    try {
      if (chunk.length <= INLINE_BYTES) writeAllNow(this.#fd, chunk, this.#position);
      else await writeAll(this.#fd, chunk, this.#position);
    } catch (error) {
      throw withPath(error, this.#path);
    }
    this.#position += chunk.length;
  }

  /** Makes these the only xattrs that begin with `prefix`; nothing where the file system has no such thing. @throws errno of setxattr(2). */
  replaceXattrs(prefix: string, values: ReadonlyMap<string, string>): void {
    try {
      this.#do(() => {
        for (const name of readXattrs(this.#fd, prefix).keys())
          if (!values.has(name.slice(prefix.length))) removeXattr(this.#fd, name);
        for (const [name, value] of values) setXattr(this.#fd, prefix + name, Buffer.from(value));
      });
    } catch (error) {
      if (!UNSUPPORTED.includes(errnoName(error) ?? "")) throw error;
    }
  }

  /** @throws errno of getxattr(2). */
  readXattrs(prefix: string): ReadonlyMap<string, Uint8Array> {
    return this.#do(() => readXattrs(this.#fd, prefix));
  }

  close(): void {
    close(this.#fd, () => undefined);
  }

  #do<T>(run: () => T): T {
    try {
      return withFileRightsOf(this.#access, run);
    } catch (error) {
      throw withPath(error, this.#path);
    }
  }
}

function open(access: Access, path: string, made: string[]): [fd: number, replaces: boolean] {
  const { owner } = access;
  closeSync(openDirectoryMakingParents(access, path.endsWith("/") ? path : posix.dirname(path), made));
  const existing = tryOpen(access, path);
  if (existing === undefined) {
    const fd = access.root.open(path, WRITE | constants.O_CREAT, NEW_FILE_MODE);
    if (owner !== undefined) giveOrClose(fd, owner);
    return [fd, false];
  }
  try {
    if (fstatSync(existing).isDirectory()) throw systemError("open", path, osConstants.errno.EISDIR);
    if (owner !== undefined) changeOwner(existing, owner.uid, owner.gid);
    // The same file that was given away, whoever replaces the name meanwhile.
    return [openSync(`/proc/self/fd/${existing}`, WRITE), true];
  } finally {
    closeSync(existing);
  }
}

function tryOpen(access: Access, path: string): number | undefined {
  try {
    return access.root.open(path, O_PATH, 0, "write");
  } catch (error) {
    if (errnoName(error) === "ENOENT") return undefined;
    throw error;
  }
}

function giveOrClose(fd: number, { uid, gid }: NonNullable<Access["owner"]>): void {
  try {
    changeOwner(fd, uid, gid);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
