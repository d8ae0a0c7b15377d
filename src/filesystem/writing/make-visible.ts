import { fchmodSync, fstatSync, fsync } from "node:fs";
import { promisify } from "node:util";
import { PicodError } from "../../errors/picod-error.js";
import { withFileRightsOf } from "../../os/credentials.js";
import { beginWriteback } from "../../os/file-data.js";
import { errnoName, withPath } from "../../os/system-error.js";
import { publish } from "../../os/temporary-file.js";
import type { Access } from "../access.js";
import { describeEntry, type EntryInfo } from "../entry-info.js";
import { syncNames } from "./sync-names.js";
import { copyOver } from "./write-all.js";
import type { WriteDestination } from "./write-destination.js";
import { assertPrecondition, type WritePrecondition } from "./write-precondition.js";
import { lookUp, type WriteTarget } from "./write-target.js";

const NEW_FILE_MODE = 0o644;
/** From here on renaming over another file may take so long that it is to be noticed. */
const LARGE_BYTES = 1024 * 1024;
/** Renaming is refused over a mount point, over another's file in a sticky directory, and where the user may not create. */
const NOT_RENAMABLE = ["EBUSY", "EPERM", "EACCES"];

/** Content that is complete, and what is to become of it. */
export interface NewContent {
  readonly access: Access;
  readonly path: string;
  readonly target: WriteTarget;
  readonly destination: WriteDestination;
  readonly bytes: number;
  /** Permission bits; those of the replaced file by default, else 0644. */
  readonly mode: number | undefined;
  readonly precondition: WritePrecondition | undefined;
  /** fsync the file and the names that lead to it. */
  readonly sync: boolean;
  /** Called as soon as others see the content; syncing its name may still fail. */
  onVisible(): void;
}

/** Gives the content its name. @throws PRECONDITION_FAILED, ALREADY_EXISTS, errno with the path. */
export async function makeVisible(content: NewContent): Promise<EntryInfo> {
  const { access, path, target, destination, bytes, sync } = content;
  try {
    if (destination.way === "rename") withFileRightsOf(access, () => fchmodSync(destination.fd, newMode(content)));
    if (sync) await promisify(fsync)(destination.fd);
    else if (target.existing !== undefined && bytes >= LARGE_BYTES) await beginWriteback(destination.fd);
    const fd = await visibleDescriptor(content);
    content.onVisible();
    if (sync && (target.existing === undefined || fd !== destination.existingFd)) await syncNames(access, target);
    return describeEntry(path, fstatSync(fd, { bigint: true }), access.users);
  } catch (error) {
    throw withPath(error, path);
  }
}

async function visibleDescriptor(content: NewContent): Promise<number> {
  const { access, path, destination, bytes, mode, sync } = content;
  const { way, fd, existingFd } = destination;
  const setMode = (of: number) => {
    if (mode !== undefined) withFileRightsOf(access, () => fchmodSync(of, mode));
  };
  if (way === "in-place") {
    setMode(fd);
    return fd;
  }
  if (way === "rename" && withFileRightsOf(access, () => rename(content))) return fd;
  if (existingFd === undefined) throw new PicodError("PRECONDITION_FAILED", `cannot replace ${path}: it is in use`, { path });
  withFileRightsOf(access, () => assertStillHolds(content));
  await copyOver(fd, existingFd, bytes);
  setMode(existingFd);
  if (sync) await promisify(fsync)(existingFd);
  return existingFd;
}

/** False when the name cannot be renamed over. */
function rename(content: NewContent): boolean {
  const { precondition } = content;
  const { temporary } = content.destination;
  const { name, existing } = content.target;
  if (temporary === undefined) return false;
  assertStillHolds(content);
  try {
    if (existing === undefined) {
      try {
        publish(temporary, name, false);
        return true;
      } catch (error) {
        if (errnoName(error) !== "EEXIST" || precondition?.kind === "must-not-exist") throw error;
      }
    }
    publish(temporary, name, true);
    return true;
  } catch (error) {
    if (existing !== undefined && NOT_RENAMABLE.includes(errnoName(error) ?? "")) return false;
    throw error;
  }
}

function assertStillHolds({ path, target, precondition }: NewContent): void {
  if (precondition === undefined) return;
  assertPrecondition(path, lookUp(target.directoryFd, target.name)?.stats, precondition);
}

function newMode({ mode, target: { existing } }: NewContent): number {
  return mode ?? (existing === undefined ? NEW_FILE_MODE : Number(existing.mode) & 0o7777);
}
