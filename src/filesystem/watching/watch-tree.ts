import { closeSync, fstatSync } from "node:fs";
import { constants } from "node:os";
import { posix } from "node:path";
import { PicodError } from "../../errors/picod-error.js";
import { withFileRightsOf } from "../../os/credentials.js";
import { IN } from "../../os/inotify.js";
import { knownPathOf } from "../../os/real-path.js";
import { openIn } from "../../os/root.js";
import { errnoName, systemError, withPath } from "../../os/system-error.js";
import { isTemporaryName } from "../../os/temporary-name.js";
import type { Access } from "../access.js";
import { inTurns } from "../walking/walk.js";
import type { KernelWatches, RenameEnd, TreeWatcher } from "./kernel-watches.js";
import type { TreeEvent } from "./tree-event.js";
import { WatchNode } from "./watch-node.js";
import { OPEN_DIRECTORY, type ScannedTree, scan, VANISHED } from "./watch-scan.js";

export interface WatchTreeOptions {
  readonly recursive: boolean;
  /** Whether to watch a directory below the beginning. */
  readonly enters: (relativePath: string) => boolean;
  readonly onEvent: (event: TreeEvent) => void;
}

const BATCH = 256;
/** The other half of an exchange comes right after it, but for renames that others do at that moment. */
const MAX_REPLACED = 4;

/**
 * Watches a directory and, when asked, all below it on the same file system. Directories that appear are watched first and scanned then.
 * It holds no descriptor, so that what it watches can be unmounted, and the names of all entries.
 */
export class WatchTree implements TreeWatcher<WatchNode>, ScannedTree {
  readonly recursive: boolean;
  readonly #watches: KernelWatches;
  readonly #access: Access;
  readonly #path: string;
  readonly #options: WatchTreeOptions;
  readonly #closing = new AbortController();
  /** Where it is, for the guard to judge what happens there; undefined: all is told. */
  #realPath: string | undefined;
  #identity: { readonly dev: bigint; readonly ino: bigint } | undefined;
  #root = new WatchNode(this);
  /** While it looks at everything: what is found is nothing new, and what happens will be covered by what is told in the end. */
  #silent = true;
  #opened = false;
  #lost = false;
  /** Directories to scan, in this order. */
  readonly #toScan = new Set<WatchNode>();
  /** Of those, the ones to look at even if they are watched. */
  readonly #toScanAgain = new WeakSet<WatchNode>();
  #scanning: Promise<void> | undefined;
  /** Names that renames have replaced, the last one first. */
  #replaced: readonly RenameEnd<WatchNode>[] = [];

  constructor(watches: KernelWatches, access: Access, path: string, options: WatchTreeOptions) {
    this.recursive = options.recursive;
    this.#watches = watches;
    this.#access = access;
    this.#path = path;
    this.#options = options;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Directories that are watched. */
  get directories(): number {
    let count = 0;
    for (const node of this.#root.all()) if (node.watched) count++;
    return count;
  }

  /**
   * Begins; what happens after it has resolved is told. Directories below that cannot be watched are told at once.
   * @throws errno of open(2) or of KernelWatches.add for the directory itself; the signal's reason.
   */
  async open(abortSignal: AbortSignal): Promise<void> {
    const onAbort = () => this.close();
    abortSignal.addEventListener("abort", onAbort);
    try {
      abortSignal.throwIfAborted();
      await this.#scan(this.#root);
      this.#opened = true;
      this.#silent = this.#lost;
      this.#scanRest();
    } catch (error) {
      const ended = this.closed;
      this.close();
      abortSignal.throwIfAborted();
      throw ended ? systemError("open", this.#path, constants.errno.ENOENT) : withPath(error, this.#path);
    } finally {
      abortSignal.removeEventListener("abort", onAbort);
    }
  }

  /** Resolves when all that has happened so far has been told. */
  async settled(): Promise<void> {
    await this.#watches.settled();
    await this.#scanning;
  }

  /** Whether its path still leads to the directory that it watches. */
  isInPlace(): boolean {
    try {
      withFileRightsOf(this.#access, () => closeSync(this.#openRoot()));
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    if (this.closed) return;
    this.#closing.abort();
    this.#toScan.clear();
    this.#root.release();
  }

  onEvent(node: WatchNode, mask: number, name: string): void {
    const isDirectory = (mask & IN.ISDIR) !== 0;
    if (name === "") this.#onSelfEvent(node, mask);
    if (name === "" || isTemporaryName(name)) return;
    const path = node.pathOf(name);
    const known = node.names.has(name);
    if ((mask & IN.CREATE) !== 0) {
      node.names.add(name);
      this.#tell({ kind: "created", path, isDirectory, known });
      if (isDirectory) this.#watchLater(node, name);
    } else if ((mask & IN.DELETE) !== 0) {
      node.names.delete(name);
      node.detach(name)?.release();
      this.#tell({ kind: "removed", path, isDirectory, known });
    } else {
      const kind = (mask & IN.MODIFY) !== 0 ? "modified" : "attributes";
      this.#tell({ kind, path, isDirectory, known });
      // It may have become readable.
      if (isDirectory && node.child(name)?.watched === false) this.#scanLater(node.child(name));
    }
  }

  onRename(from: readonly RenameEnd<WatchNode>[], to: readonly RenameEnd<WatchNode>[], isDirectory: boolean): void {
    const entered = to.filter(isOfTree);
    for (const end of from.filter(isOfTree)) {
      const moved = end.directory.child(end.name);
      // On two paths of one inode both ends are of the same path. A scan may have found a directory where a later event will move it.
      const same = entered.find(({ directory }) => directory === end.directory);
      const target = same ?? entered.find(({ directory }) => moved?.holds(directory) !== true);
      if (target !== undefined) entered.splice(entered.indexOf(target), 1);
      this.#move(end, target, isDirectory);
    }
    for (const end of entered) if (!end.directory.released) this.#move(undefined, end, isDirectory);
  }

  onOverflow(): void {
    this.#silent = true;
    this.#lost = true;
    if (this.#opened) this.#scanRest();
  }

  enters(relativePath: string, device: bigint): boolean {
    return device === this.#identity?.dev && this.#wants(relativePath);
  }

  watch(node: WatchNode, directoryFd: number): void {
    if (!this.closed) node.watchWith(this.#watches.add(directoryFd, node));
  }

  found(node: WatchNode, name: string, isDirectory: boolean): void {
    this.#tell({ kind: "created", path: node.pathOf(name), isDirectory, known: false });
  }

  unwatched(path: string, error: unknown): void {
    if (!this.closed && this.#shows(path, true)) this.#options.onEvent({ kind: "unwatched", path, error });
  }

  #onSelfEvent(node: WatchNode, mask: number): void {
    const isRoot = node === this.#root;
    if ((mask & IN.ATTRIB) !== 0 && isRoot) this.#tell({ kind: "attributes", path: "", isDirectory: true, known: true });
    if ((mask & IN.UNMOUNT) !== 0 && isRoot) this.#end("its file system was unmounted");
    if ((mask & IN.DELETE_SELF) !== 0 && isRoot) this.#end("it was removed", "removed");
    if ((mask & IN.MOVE_SELF) !== 0 && isRoot) this.#end("it was moved away", "moved");
    if ((mask & IN.IGNORED) !== 0) {
      node.unwatched();
      if (isRoot) this.#end("it can no longer be watched");
    }
  }

  #move(from: RenameEnd<WatchNode> | undefined, to: RenameEnd<WatchNode> | undefined, isDirectory: boolean): void {
    const [fromPath, toPath] = [from?.directory.pathOf(from.name), to?.directory.pathOf(to.name)];
    const fromKnown = from?.directory.names.delete(from.name) ?? false;
    const toKnown = to?.directory.names.has(to.name) ?? false;
    const moved = from?.directory.detach(from.name);
    if (to !== undefined) {
      to.directory.names.add(to.name);
      to.directory.detach(to.name)?.release();
    }
    this.#tell({ kind: "moved", from: fromPath, to: toPath, isDirectory, fromKnown, toKnown });
    if (to !== undefined && isDirectory && this.#wants(to.directory.pathOf(to.name))) this.#moveTo(to, moved);
    else moved?.release();
    this.#lookWhatWasExchanged(from, to, toKnown);
  }

  /** Puts a directory, which brings its watches along unless it comes from elsewhere, into its new place. */
  #moveTo({ directory, name }: RenameEnd<WatchNode>, moved: WatchNode | undefined): void {
    directory.attach(name, moved ?? new WatchNode(this));
    // Before it was moved the name may have been that of another one when it was opened; and what is below may not have been found.
    for (const node of directory.child(name)?.all() ?? []) if (node === moved || !node.watched) this.#scanLater(node);
  }

  /**
   * The second half of an exchange leaves a name that exists. The kernel tells of two renames, and does not say that they were one: looking
   * is the only way to know.
   */
  #lookWhatWasExchanged(from: RenameEnd<WatchNode> | undefined, to: RenameEnd<WatchNode> | undefined, toKnown: boolean): void {
    const isFrom = ({ directory, name }: RenameEnd<WatchNode>) => directory === from?.directory && name === from.name;
    if (from !== undefined && this.#replaced.some(isFrom)) {
      this.#toScanAgain.add(from.directory);
      this.#scanLater(from.directory);
    }
    if (to !== undefined && toKnown) this.#replaced = [to, ...this.#replaced.slice(0, MAX_REPLACED - 1)];
  }

  #watchLater(parent: WatchNode, name: string): void {
    if (!this.#wants(parent.pathOf(name))) return;
    if (parent.child(name) === undefined) parent.attach(name, new WatchNode(this));
    this.#scanLater(parent.child(name));
  }

  #wants(relativePath: string): boolean {
    return this.recursive && this.#options.enters(relativePath);
  }

  #scanLater(node: WatchNode | undefined): void {
    if (node === undefined || this.closed) return;
    this.#toScan.add(node);
    // Not before the beginning has been scanned: that will find most of them.
    if (!this.#silent) this.#scanRest();
  }

  #scanRest(): void {
    this.#scanning ??= this.#scanAll().finally(() => {
      this.#scanning = undefined;
    });
  }

  async #scanAll(): Promise<void> {
    while (!this.closed) {
      if (this.#lost) {
        await this.#beginAgain();
        continue;
      }
      const [node] = this.#toScan;
      if (node === undefined) return;
      this.#toScan.delete(node);
      try {
        if (!node.released) await this.#scan(node);
      } catch (error) {
        this.#onScanFailed(node, error);
      }
    }
  }

  /** Looks at everything as if for the first time. The old watches stay until there are new ones, so that none has to be added. */
  async #beginAgain(): Promise<void> {
    this.#lost = false;
    this.#toScan.clear();
    const old = this.#root;
    this.#root = new WatchNode(this);
    try {
      await this.#scan(this.#root);
    } catch (error) {
      this.#onScanFailed(this.#root, error);
    } finally {
      old.release();
    }
    if (this.#lost || this.closed) return;
    this.#silent = false;
    this.#tell({ kind: "overflow" });
  }

  #onScanFailed(node: WatchNode, error: unknown): void {
    if (this.closed) return;
    if (errnoName(error) === undefined && !(error instanceof PicodError)) throw error;
    if (node === this.#root) this.#end("it cannot be read any more");
    else if (!VANISHED.includes(errnoName(error) ?? "")) this.unwatched(node.path, error);
  }

  async #scan(node: WatchNode): Promise<void> {
    const { signal } = this.#closing;
    for await (const _ of inTurns(this.#access, this.#steps(node), BATCH, signal, () => undefined));
  }

  *#steps(node: WatchNode): Generator<undefined, void, void> {
    const fd = this.#open(node);
    try {
      const watch = this.#watches.add(fd, node);
      const again = this.#toScanAgain.delete(node);
      if (node.isReplacedBy(watch)) this.#takeBack(node);
      if (node.watchWith(watch) || again) yield* scan(this, node, fd);
    } finally {
      closeSync(fd);
    }
  }

  /** What was found in a directory is not in it: when it was opened, its name was that of another one. */
  #takeBack(node: WatchNode): void {
    for (const name of node.names) {
      const child = node.detach(name);
      if (child !== undefined) this.#takeBack(child);
      this.#tell({ kind: "removed", path: node.pathOf(name), isDirectory: child !== undefined, known: true });
      child?.release();
    }
    node.names.clear();
  }

  /** Opens a directory of the tree, going from one to the next so that no link is followed. @throws errno of open(2). */
  #open(node: WatchNode): number {
    let fd = this.#openRootOrEnd();
    for (const name of node.components) {
      const above = fd;
      try {
        fd = openIn(above, name, OPEN_DIRECTORY);
      } catch (error) {
        throw withPath(error, node.path);
      } finally {
        closeSync(above);
      }
    }
    return fd;
  }

  #openRootOrEnd(): number {
    try {
      return this.#openRoot();
    } catch (error) {
      const isElsewhere = error instanceof PicodError || [...VANISHED, "EACCES"].includes(errnoName(error) ?? "");
      if (this.#opened && isElsewhere) this.#end("its path leads to it no longer");
      throw error;
    }
  }

  /** @throws ENOENT when it is another directory than at first. */
  #openRoot(): number {
    const fd = this.#access.root.open(this.#path, OPEN_DIRECTORY);
    const { dev, ino } = fstatSync(fd, { bigint: true });
    this.#identity ??= { dev, ino };
    if (this.#access.root.guard !== undefined) this.#realPath ??= knownPathOf(fd);
    if (this.#identity.dev === dev && this.#identity.ino === ino) return fd;
    closeSync(fd);
    throw systemError("open", this.#path, constants.errno.ENOENT);
  }

  #tell(event: TreeEvent): void {
    if (this.closed || this.#silent) return;
    const shown = this.#access.root.guard === undefined ? event : this.#shownPart(event);
    if (shown !== undefined) this.#options.onEvent(shown);
  }

  /** What the guard lets those who watch know of it. */
  #shownPart(event: TreeEvent): TreeEvent | undefined {
    if (!("isDirectory" in event)) return event;
    const { isDirectory } = event;
    if (event.kind !== "moved") return this.#shows(event.path, isDirectory) ? event : undefined;
    const shown = (path: string | undefined) => (path !== undefined && this.#shows(path, isDirectory) ? path : undefined);
    const [from, to] = [shown(event.from), shown(event.to)];
    return from === undefined && to === undefined ? undefined : { ...event, from, to };
  }

  #shows(relativePath: string, isDirectory: boolean): boolean {
    const { guard } = this.#access.root;
    if (guard === undefined) return true;
    if (this.#realPath === undefined) return false;
    return guard.showsPath(posix.join(this.#realPath, relativePath), isDirectory);
  }

  #end(message: string, cause: (TreeEvent & { kind: "ended" })["cause"] = "other"): void {
    if (this.closed) return;
    this.close();
    this.#options.onEvent({ kind: "ended", cause, message });
  }
}

function isOfTree(end: RenameEnd<WatchNode> | undefined): boolean {
  return end !== undefined && !end.directory.released && !isTemporaryName(end.name);
}
