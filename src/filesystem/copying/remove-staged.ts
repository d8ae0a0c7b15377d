import { closeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { changeMode } from "../../os/attributes.js";
import { type FileStats, statIn } from "../../os/directory.js";
import { O_PATH, openIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import { type Removal, removeTree, type TreeTarget } from "../removing/remove-tree.js";
import { OPEN_DIRECTORY } from "../walking/descent.js";
import type { Step } from "../walking/in-steps.js";
import { walk } from "../walking/walk.js";

const FULL_ACCESS = 0o700;

/** What passes when others end: worth waiting for. */
const SCARCE = ["EMFILE", "ENFILE", "ENOMEM"];
const RETRY_MS = 50;
const MAX_ATTEMPTS = 100;

/** Removes a directory of ours that is not to take its name. To be run by `inSteps`. @throws EMFILE, ENOMEM when they last. */
export function* removeStaged(directoryFd: number, name: string, above: string): Generator<Step, void, void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return yield* removeOnce(directoryFd, name, above);
    } catch (error) {
      if (!SCARCE.includes(errnoName(error) ?? "") || attempt === MAX_ATTEMPTS) throw error;
    }
    yield () => sleep(RETRY_MS);
  }
}

function* removeOnce(directoryFd: number, name: string, above: string): Generator<Step, void, void> {
  yield* makeRemovable(directoryFd, name);
  // What cannot be removed stays: the error that led here is the one to report. Nothing in it needs to be protected.
  const removal: Removal = { removed: 0, failure: undefined };
  yield* removeSteps({ directoryFd, name, rootIdentity: { dev: 0n, ino: 0n } }, above, removal);
}

/** What `removeTree` does, to be run by `inSteps`. */
export function* removeSteps(target: TreeTarget, above: string, removal: Removal): Generator<Step, void, void> {
  for (const wait of removeTree(target, above, removal)) yield wait && (() => wait.then(() => undefined));
}

/** Directories that are complete have the modes of their originals, which may keep even their owner out. */
function* makeRemovable(directoryFd: number, name: string): Generator<Step, void, void> {
  unlock(directoryFd, name, statIn(directoryFd, name));
  const fd = openIn(directoryFd, name, OPEN_DIRECTORY);
  try {
    const enters: WalkEnters = (entry) => unlock(entry.directoryFd, entry.name, entry.stats);
    for (const _entry of walk(fd, { hides: false, enters, onUnreadable: () => undefined })) yield undefined;
  } finally {
    closeSync(fd);
  }
}

type WalkEnters = NonNullable<Parameters<typeof walk>[1]["enters"]>;

function unlock(directoryFd: number, name: string, { mode }: FileStats): true {
  if ((Number(mode) & FULL_ACCESS) === FULL_ACCESS) return true;
  const fd = openIn(directoryFd, name, O_PATH);
  try {
    changeMode(fd, FULL_ACCESS);
  } finally {
    closeSync(fd);
  }
  return true;
}
