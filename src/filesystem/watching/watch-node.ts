import type { DirectoryWatcher, KernelWatch } from "./kernel-watches.js";
import type { WatchTree } from "./watch-tree.js";

/** One directory of a tree that is watched, or is about to be. */
export class WatchNode implements DirectoryWatcher {
  readonly tree: WatchTree;
  /** What is in it as far as reported: an event about another name says something that a scan has yet to find, or that is over. */
  readonly names = new Set<string>();
  readonly #children = new Map<string, WatchNode>();
  #parent: WatchNode | undefined;
  #name = "";
  #watch: KernelWatch | undefined;
  #released = false;

  constructor(tree: WatchTree) {
    this.tree = tree;
  }

  /** It, or a directory above it, is no longer of the tree. */
  get released(): boolean {
    return this.#released;
  }

  get watched(): boolean {
    return this.#watch !== undefined;
  }

  /** Names from the beginning on. */
  get components(): string[] {
    return this.#parent === undefined ? [] : [...this.#parent.components, this.#name];
  }

  /** Below the beginning, without a slash before it; "" for the beginning itself. */
  get path(): string {
    return this.components.join("/");
  }

  pathOf(name: string): string {
    return [...this.components, name].join("/");
  }

  child(name: string): WatchNode | undefined {
    return this.#children.get(name);
  }

  /** Whether another directory is this one or below it. */
  holds(other: WatchNode): boolean {
    for (let node: WatchNode | undefined = other; node !== undefined; node = node.#parent) if (node === this) return true;
    return false;
  }

  /** Whether that is a watch of another directory than the one so far. */
  isReplacedBy(watch: KernelWatch): boolean {
    return this.#watch !== undefined && this.#watch.wd !== watch.wd;
  }

  /** Itself, and all below. */
  *all(): Generator<WatchNode> {
    yield this;
    for (const child of this.#children.values()) yield* child.all();
  }

  /** Puts a directory here, where it was made or moved to. */
  attach(name: string, child: WatchNode): void {
    this.#children.set(name, child);
    child.#parent = this;
    child.#name = name;
  }

  /** Takes a directory out; it keeps its watches until it is released. */
  detach(name: string): WatchNode | undefined {
    const child = this.#children.get(name);
    this.#children.delete(name);
    return child;
  }

  /** Takes over a watch of its directory. False when it had that already. */
  watchWith(watch: KernelWatch): boolean {
    if (this.#watch?.wd === watch.wd) return false;
    this.#watch?.release();
    this.#watch = watch;
    return true;
  }

  release(): void {
    for (const node of this.all()) {
      node.#released = true;
      node.#watch?.release();
      node.#watch = undefined;
    }
  }

  onEvent(mask: number, name: string): void {
    if (!this.#released) this.tree.onEvent(this, mask, name);
  }

  /** The kernel has ended the watch. */
  unwatched(): void {
    this.#watch?.release();
    this.#watch = undefined;
  }
}
