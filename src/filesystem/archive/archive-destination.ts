import { closeSync, constants, fstatSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { changeMode } from "../../os/attributes.js";
import { hiddenName } from "../../os/hidden-name.js";
import { rename } from "../../os/rename.js";
import { makeDirectoryIn, O_PATH, openIn, removeDirectoryIn } from "../../os/root.js";
import { errnoName, systemError, withPath } from "../../os/system-error.js";
import type { Access } from "../access.js";
import { removeStaged } from "../copying/remove-staged.js";
import { DescriptorReserve } from "../walking/descriptor-reserve.js";
import type { Step } from "../walking/in-steps.js";
import { openDirectoryMakingParents, removeMadeDirectories } from "../writing/make-parents.js";
import { assertMayFollow, openWriteTarget, type WriteTarget } from "../writing/write-target.js";
import type { UnpackSteps } from "./archive-input.js";

const DIRECTORY = O_PATH | constants.O_DIRECTORY;
/** Narrowed by the daemon's umask. */
const DIRECTORY_MODE = 0o777;
/** Nobody else looks into what is not complete. */
const STAGED_MODE = 0o700;
/** What is made in a directory with it has the directory's group. */
const SET_GROUP = 0o2000;

/** Where an archive is unpacked. To be used with the rights of the acting user; `undo` or `close` in any case. */
export interface ArchiveDestination {
  readonly fd: number;
  /** Makes what was unpacked visible, where it is not yet. `setAttributes` sets what the archive says about the directory itself. */
  complete(setAttributes: ((fd: number) => void) | undefined): Iterable<Step>;
  /** Removes what can be removed. */
  undo(): Iterable<Step>;
  close(): void;
}

/** The directory itself: files appear in it one by one. @throws errno of open(2) and mkdir(2). */
export function openInPlace(access: Access, path: string): ArchiveDestination {
  const made: string[] = [];
  let fd: number;
  try {
    assertMayFollow(access, path);
    fd = openDirectoryMakingParents(access, path, made);
  } catch (error) {
    removeMadeDirectories(access, made);
    throw error;
  }
  return {
    fd,
    complete(setAttributes) {
      // A directory that was there keeps its own: /tmp is not to become private because an archive's beginning was.
      if (made.length > 0) setAttributes?.(fd);
      return [];
    },
    undo() {
      removeMadeDirectories(access, made);
      return [];
    },
    close: () => closeSync(fd),
  };
}

/** A hidden directory beside it, which takes its place in one step. @throws ENOTDIR, errno of open(2) and mkdir(2). */
export function openStaged(access: Access, path: string): ArchiveDestination {
  const target = openWriteTarget(access, path.replace(/(?<=.)(\/\.?)+$/, ""));
  const { directoryFd, existing, followedLink, madeDirectories } = target;
  const name = hiddenName(target.name);
  let reserve: DescriptorReserve | undefined;
  let fd: number | undefined;
  try {
    if (existing !== undefined && !existing.isDirectory()) throw systemError("open", path, osConstants.errno.ENOTDIR);
    // As in place, and as with mkdir(1), a link that leads nowhere is no name for a new directory.
    if (existing === undefined && followedLink) throw systemError("open", path, osConstants.errno.ENOENT);
    reserve = new DescriptorReserve(directoryFd);
    makeDirectoryIn(directoryFd, name, DIRECTORY_MODE);
    fd = openMade(directoryFd, name);
    const mode = fstatSync(fd).mode & 0o7777;
    changeMode(fd, STAGED_MODE | (mode & SET_GROUP));
    const finalMode = existing === undefined ? mode : Number(existing.mode) & 0o7777;
    return new StagedDirectory(access, path, target, name, fd, finalMode, reserve);
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    reserve?.release();
    closeSync(directoryFd);
    removeMadeDirectories(access, madeDirectories);
    throw error;
  }
}

function openMade(directoryFd: number, name: string): number {
  try {
    return openIn(directoryFd, name, DIRECTORY);
  } catch (error) {
    removeDirectoryIn(directoryFd, name);
    throw error;
  }
}

class StagedDirectory implements ArchiveDestination {
  readonly fd: number;
  readonly #access: Access;
  readonly #path: string;
  readonly #target: WriteTarget;
  readonly #name: string;
  readonly #mode: number;
  readonly #reserve: DescriptorReserve;

  constructor(
    access: Access,
    path: string,
    target: WriteTarget,
    name: string,
    fd: number,
    mode: number,
    reserve: DescriptorReserve,
  ) {
    this.#access = access;
    this.#path = path;
    this.#target = target;
    this.#name = name;
    this.fd = fd;
    this.#mode = mode;
    this.#reserve = reserve;
  }

  *complete(setAttributes: ((fd: number) => void) | undefined): UnpackSteps {
    changeMode(this.fd, this.#mode);
    setAttributes?.(this.fd);
    if (!this.#takePlace()) return;
    // What cannot be removed of the old directory, another's files perhaps, stays hidden: the archive is in place.
    yield* this.#remove();
  }

  *undo(): UnpackSteps {
    yield* this.#remove();
    removeMadeDirectories(this.#access, this.#target.madeDirectories);
  }

  close(): void {
    this.#reserve.release();
    closeSync(this.fd);
    closeSync(this.#target.directoryFd);
  }

  /** Returns whether something else has the hidden name now. */
  #takePlace(): boolean {
    const { directoryFd } = this.#target;
    const staged = { directoryFd, name: this.#name };
    const place = { directoryFd, name: this.#target.name };
    try {
      rename(staged, place, "exchange");
      return true;
    } catch (error) {
      if (errnoName(error) !== "ENOENT") throw withPath(error, this.#path);
    }
    rename(staged, place, "free");
    return false;
  }

  /** A caller that goes meanwhile, of which there is word once, does not keep it from the rest. */
  *#remove(): UnpackSteps {
    this.#reserve.release();
    for (let attempts = 2; attempts > 0; attempts--) {
      try {
        return yield* removeStaged(this.#target.directoryFd, this.#name, this.#path);
      } catch (error) {
        if (errnoName(error) === "ENOENT") return;
      }
    }
  }
}
