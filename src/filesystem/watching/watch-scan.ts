import { closeSync, constants } from "node:fs";
import { isDirectory } from "../../os/directory.js";
import { openIn } from "../../os/root.js";
import { errnoName } from "../../os/system-error.js";
import { isTemporaryName } from "../../os/temporary-name.js";
import { type WalkedEntry, walk } from "../walking/walk.js";
import { WatchNode } from "./watch-node.js";

export const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NONBLOCK;
/** It was removed, or became something else, after its name was read: the event that says so is on its way. */
export const VANISHED = ["ENOENT", "ENOTDIR", "ELOOP"];

/** What a scan needs to know of the tree that it is for, and tells it. */
export interface ScannedTree {
  readonly recursive: boolean;
  /** Whether a directory of that file system is to be watched. */
  enters(relativePath: string, device: bigint): boolean;
  /** Watches a directory that is about to be read. @throws as KernelWatches.add. */
  watch(node: WatchNode, directoryFd: number): void;
  /** There is an entry that no event has told of so far. */
  found(node: WatchNode, name: string, isDirectory: boolean): void;
  unwatched(relativePath: string, error: unknown): void;
}

/**
 * Looks at what is in an opened directory, which is watched, and in the directories below, each of which is watched before it is read:
 * what is made after that is an event. To be called with the rights of the acting user, in turns (see `inTurns`); whatever events change
 * meanwhile they change in the nodes.
 */
export function* scan(tree: ScannedTree, node: WatchNode, directoryFd: number): Generator<undefined, void, void> {
  /** By the path below the directory as it was when the scan came by. */
  const nodes = new Map([["", node]]);

  function take(relativePath: string, isDirectory: boolean): void {
    const [directory, name] = split(relativePath);
    const parent = nodes.get(directory);
    if (parent === undefined || parent.released || isTemporaryName(name) || parent.names.has(name)) return;
    parent.names.add(name);
    tree.found(parent, name, isDirectory);
  }

  function enters({ relativePath, name, directoryFd, stats }: WalkedEntry): boolean {
    const parent = nodes.get(split(relativePath)[0]);
    // It may have gone, and the tree been told, since it was taken.
    if (parent === undefined || parent.released || !parent.names.has(name) || isTemporaryName(name)) return false;
    if (!tree.enters(parent.pathOf(name), stats.dev)) return false;
    const known = parent.child(name);
    // It has been scanned already, or will be.
    if (known !== undefined) return false;
    const child = new WatchNode(node.tree);
    parent.attach(name, child);
    nodes.set(relativePath, child);
    return watchIn(tree, child, directoryFd, name);
  }

  /** Its name is all that is known of it. Directories are opened, and reported, by `enters`. */
  const onUnreadable = (relativePath: string) => take(relativePath, false);
  const depth = tree.recursive ? {} : { maxDepth: 1 };
  for (const entry of walk(directoryFd, { ...depth, enters, onUnreadable })) {
    if (entry !== undefined) take(entry.relativePath, isDirectory(entry.stats));
    yield undefined;
  }
}

/** Watches a directory by its name in an opened one. False when that is not possible, and the tree has been told. */
function watchIn(tree: ScannedTree, child: WatchNode, directoryFd: number, name: string): boolean {
  let fd: number | undefined;
  try {
    fd = openIn(directoryFd, name, OPEN_DIRECTORY);
    tree.watch(child, fd);
    return true;
  } catch (error) {
    if (errnoName(error) === undefined) throw error;
    if (!VANISHED.includes(errnoName(error) ?? "")) tree.unwatched(child.path, error);
    return false;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function split(relativePath: string): [directory: string, name: string] {
  const slash = relativePath.lastIndexOf("/");
  return [relativePath.slice(0, Math.max(0, slash)), relativePath.slice(slash + 1)];
}
