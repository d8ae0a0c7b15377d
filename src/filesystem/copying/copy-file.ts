import { type BigIntStats, close, closeSync, constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { actingGuard } from "../../os/path-guard.js";
import { openIn } from "../../os/root.js";
import { errnoName, systemError, withPath } from "../../os/system-error.js";
import { createTemporaryFile, discard, publish } from "../../os/temporary-file.js";
import { type Attributes, attributesOf, giveAttributes, giveAttributesInPlace } from "../attributes.js";
import { isSame } from "../walking/descent.js";
import type { Step } from "../walking/in-steps.js";
import { assertFileSize } from "../writing/file-size-limit.js";
import { openDestination, type WriteDestination } from "../writing/write-destination.js";
import { lookUp } from "../writing/write-target.js";
import type { DataCopier } from "./copy-data.js";
import { isNamed, naming } from "./naming.js";

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
/** Renaming is refused over a mount point, and over another's file in a sticky directory. */
const NOT_RENAMABLE = ["EBUSY", "EPERM"];

/** A name in an opened directory, and how it is called in errors. */
export interface NamedFile {
  readonly directoryFd: number;
  readonly name: string;
  readonly path: string;
}

/**
 * How a file comes to its name:
 *  - `new`: nobody else knows the directory, the name is free.
 *  - `free`: as a whole, when nothing has the name.
 *  - `replace`: as a whole, instead of what has the name, as rename(2).
 *  - `write`: as WriteFile does: as a whole, but into a device, a file of several names, a mount point, or where that is all the user may.
 */
export type Arrival = "new" | "free" | "replace" | "write";

/** Copies a regular file with its attributes. Yields what is to be done on threads; returns its bytes. @throws errno. */
export function* copyFile(data: DataCopier, from: NamedFile, to: NamedFile, arrival: Arrival): Generator<Step, number, void> {
  const fromFd = naming(from.path, () => openIn(from.directoryFd, from.name, READ));
  try {
    const stats = fstatSync(fromFd, { bigint: true });
    // It became something else after it was looked at.
    if (!stats.isFile()) throw systemError("read", from.path, osConstants.errno.EAGAIN);
    assertFileSize(actingGuard(), to.path, Number(stats.size));
    const attributes = naming(from.path, () => attributesOf(fromFd, stats));
    const source = { fd: fromFd, stats, attributes };
    return yield* arrival === "new" ? copyNew(data, source, to) : copyWhole(data, source, to, arrival);
  } catch (error) {
    throw isNamed(error) ? error : withPath(error, to.path);
  } finally {
    closeSync(fromFd);
  }
}

interface Source {
  readonly fd: number;
  readonly stats: BigIntStats;
  readonly attributes: Attributes;
}

function* copyNew(data: DataCopier, from: Source, to: NamedFile): Generator<Step, number, void> {
  const fd = naming(to.path, () => openIn(to.directoryFd, to.name, CREATE, 0o600));
  try {
    const bytes = yield* data.copy(from.fd, fd, from.stats);
    assertFileSize(actingGuard(), to.path, bytes);
    giveAttributes(fd, from.attributes);
    return bytes;
  } finally {
    closeSync(fd);
  }
}

function* copyWhole(data: DataCopier, from: Source, to: NamedFile, arrival: Arrival): Generator<Step, number, void> {
  const existing = arrival === "write" ? naming(to.path, () => lookUp(to.directoryFd, to.name)?.stats) : undefined;
  // Another name of the same file has its content already, and writing would begin by emptying it.
  if (existing !== undefined && isSame(existing, from.stats)) return Number(from.stats.size);
  const destination = naming(to.path, () => open(to, existing));
  const { way, fd, temporary, existingFd } = destination;
  try {
    const bytes = yield* data.copy(from.fd, fd, from.stats);
    assertFileSize(actingGuard(), to.path, bytes);
    if (way === "rename") {
      giveAttributes(fd, from.attributes);
      if (take(destination, to, arrival)) return bytes;
    }
    if (way !== "in-place" && existingFd !== undefined) yield () => data.overwrite(fd, existingFd);
    const written = existingFd ?? fd;
    if (fstatSync(written).isFile()) giveAttributesInPlace(written, from.attributes);
    return bytes;
  } finally {
    if (temporary !== undefined) discard(temporary);
    // Freeing the blocks of a large file takes time.
    for (const opened of new Set([fd, existingFd])) if (opened !== undefined) close(opened, () => undefined);
  }
}

function open(to: NamedFile, existing: BigIntStats | undefined): WriteDestination {
  const target = { directoryFd: to.directoryFd, name: to.name, existing, followedLink: false, madeDirectories: [] };
  // A link is replaced, not followed.
  if (existing?.isSymbolicLink()) return openDestination(to.path, { ...target, existing: undefined }, undefined, undefined);
  try {
    return openDestination(to.path, target, undefined, undefined);
  } catch (error) {
    // One's own file that is write-protected can be replaced, as cp(1) -f does.
    if (errnoName(error) !== "EACCES" || !existing?.isFile() || existing.nlink > 1n) throw error;
    const temporary = createTemporaryFile(to.directoryFd);
    return { way: "rename", fd: temporary.fd, temporary, existingFd: undefined };
  }
}

/** Gives the temporary file its name; false when the name cannot be renamed over. */
function take({ temporary, existingFd }: WriteDestination, to: NamedFile, arrival: Arrival): boolean {
  if (temporary === undefined) return false;
  try {
    publish(temporary, to.name, arrival !== "free");
    return true;
  } catch (error) {
    if (existingFd !== undefined && NOT_RENAMABLE.includes(errnoName(error) ?? "")) return false;
    throw error;
  }
}
