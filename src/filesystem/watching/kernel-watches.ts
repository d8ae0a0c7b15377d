import { IN, Inotify, type InotifyEvent } from "../../os/inotify.js";
import { MovePairing, type RenameEvent } from "./move-pairing.js";

/** Who wants to know what happens in one directory. */
export interface DirectoryWatcher {
  readonly tree: TreeWatcher;
  /** A mask of IN, and the name that it is about; "" for the directory itself. IN.IGNORED: it is no longer watched. */
  onEvent(mask: number, name: string): void;
}

/** One end of a rename, in a directory that is watched. */
export interface RenameEnd<Watcher> {
  readonly directory: Watcher;
  readonly name: string;
}

/** Who watches several directories that belong together. */
export interface TreeWatcher<Watcher extends DirectoryWatcher = DirectoryWatcher> {
  /**
   * One rename, which is none or one of `from` to none or one of `to`; there are more when directories of the tree are the same inode. Ends
   * in directories that this tree does not watch are absent.
   */
  onRename(from: readonly RenameEnd<Watcher>[], to: readonly RenameEnd<Watcher>[], isDirectory: boolean): void;
  /** Events were lost. */
  onOverflow(): void;
}

export interface KernelWatch {
  /** The same for one inode. */
  readonly wd: number;
  /** Can be repeated. */
  release(): void;
}

/** So long the main thread may be busy with removing watches. */
const TURN_MS = 2;

/**
 * The daemon's one inotify instance, open as long as somebody watches. A directory that several watch, or one on several paths, is one
 * watch in the kernel, and the events go to all of them.
 */
export class KernelWatches {
  #inotify: Inotify | undefined;
  #pairing: MovePairing | undefined;
  readonly #watchers = new Map<number, Set<DirectoryWatcher>>();
  readonly #marks = new Map<number, () => void>();
  /** Numbers that may have no watchers left. */
  #unused: number[] = [];
  #sweeping: NodeJS.Immediate | undefined;
  #count = 0;

  /**
   * Begins to watch an opened directory for `watcher`. To be called with the rights of the acting user.
   * @throws the errno of inotify_init1(2) or inotify_add_watch(2): see explainWatchError.
   */
  add(directoryFd: number, watcher: DirectoryWatcher): KernelWatch {
    const inotify = this.#inotify ?? this.#open();
    let wd: number;
    try {
      wd = inotify.add(directoryFd);
    } catch (error) {
      this.#sweepLater();
      throw error;
    }
    const watchers = this.#watchers.get(wd) ?? new Set();
    this.#watchers.set(wd, watchers);
    // It watches that inode already, and has the watch to release.
    if (watchers.has(watcher)) return { wd, release: () => undefined };
    watchers.add(watcher);
    this.#count++;
    return { wd, release: () => this.#release(inotify, wd, watchers, watcher) };
  }

  /** Resolves when everything that has happened so far has been told. */
  async settled(): Promise<void> {
    const mark = this.#inotify?.mark();
    if (mark === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#marks.set(mark, resolve);
    await promise;
  }

  /** Ends all watches, without a word to those who watch. */
  close(): void {
    this.#pairing?.close();
    this.#inotify?.close();
    if (this.#sweeping !== undefined) clearImmediate(this.#sweeping);
    this.#passMarks();
    this.#watchers.clear();
    this.#unused = [];
    this.#count = 0;
    this.#inotify = this.#pairing = this.#sweeping = undefined;
  }

  #open(): Inotify {
    const pairing = new MovePairing(
      (event) => this.#tell(event),
      (event) => this.#tellRename(event),
    );
    this.#inotify = new Inotify((events) => pairing.push(events));
    this.#pairing = pairing;
    return this.#inotify;
  }

  #release(inotify: Inotify, wd: number, watchers: Set<DirectoryWatcher>, watcher: DirectoryWatcher): void {
    // It may have been closed, and even opened anew.
    if (inotify !== this.#inotify || !watchers.delete(watcher)) return;
    this.#count--;
    if (watchers.size === 0) this.#unused.push(wd);
    this.#sweepLater();
  }

  #sweepLater(): void {
    if (this.#unused.length > 0 || this.#count === 0) this.#sweeping ??= setImmediate(() => this.#sweep());
  }

  /**
   * Removes watches that nobody needs, and at last closes the instance. In turns, as whoever leaves may have watched many thousand; and
   * one by one, because closing takes a while, in which they would count against the limits of whoever comes next.
   */
  #sweep(): void {
    const until = performance.now() + TURN_MS;
    this.#sweeping = undefined;
    for (let wd = this.#unused.pop(); wd !== undefined; wd = this.#unused.pop()) {
      if (this.#watchers.get(wd)?.size === 0) {
        this.#watchers.delete(wd);
        this.#inotify?.remove(wd);
      }
      if (performance.now() > until) {
        this.#sweepLater();
        return;
      }
    }
    if (this.#count === 0) this.close();
  }

  #tell({ wd, mask, name }: InotifyEvent): void {
    if ((mask & IN.Q_OVERFLOW) !== 0) {
      for (const tree of this.#trees()) tree.onOverflow();
      // They may have been lost as well.
      this.#passMarks();
      return;
    }
    if ((mask & IN.IGNORED) !== 0) {
      this.#marks.get(wd)?.();
      this.#marks.delete(wd);
    }
    const watchers = this.#watchers.get(wd);
    // The kernel is about to number other watches.
    if ((mask & IN.IGNORED) !== 0) this.#watchers.delete(wd);
    for (const watcher of [...(watchers ?? [])]) watcher.onEvent(mask, name);
  }

  #tellRename({ from, to }: RenameEvent): void {
    const isDirectory = (((from ?? to)?.mask ?? 0) & IN.ISDIR) !== 0;
    const [left, entered] = [this.#ends(from), this.#ends(to)];
    for (const tree of new Set([...left, ...entered].map(({ directory }) => directory.tree))) {
      const ofTree = ({ directory }: RenameEnd<DirectoryWatcher>) => directory.tree === tree;
      tree.onRename(left.filter(ofTree), entered.filter(ofTree), isDirectory);
    }
  }

  #ends(event: InotifyEvent | undefined): RenameEnd<DirectoryWatcher>[] {
    if (event === undefined) return [];
    return [...(this.#watchers.get(event.wd) ?? [])].map((directory) => ({ directory, name: event.name }));
  }

  #passMarks(): void {
    for (const resolve of this.#marks.values()) resolve();
    this.#marks.clear();
  }

  #trees(): Set<TreeWatcher> {
    return new Set([...this.#watchers.values()].flatMap((watchers) => [...watchers].map(({ tree }) => tree)));
  }
}
