import { PathFilter } from "../patterns/path-filter.js";
import type { FileChange, FileChangeKind, WatchOptions } from "./file-change.js";
import type { TreeEvent } from "./tree-event.js";

type EntryEvent = Exclude<TreeEvent, { readonly kind: "overflow" | "unwatched" | "ended" }>;

/** Which change an event is to somebody who sees a part of a tree: what is out of sight is elsewhere. */
export class TreeChanges {
  readonly #base: string;
  readonly #filter: PathFilter;
  /** Without `include`. */
  readonly #excluding: PathFilter;

  /** @throws INVALID_ARGUMENT for a malformed pattern. */
  constructor(directory: string, { include = [], exclude = [] }: WatchOptions) {
    this.#base = directory;
    this.#filter = new PathFilter({ include, exclude });
    this.#excluding = new PathFilter({ include: [], exclude });
  }

  enters(relativePath: string): boolean {
    return this.#excluding.enters(relativePath);
  }

  /** As EntryInfo.path. */
  absolute(relativePath: string): string {
    if (relativePath === "") return this.#base;
    return this.#base.endsWith("/") ? `${this.#base}${relativePath}` : `${this.#base}/${relativePath}`;
  }

  /** Undefined when there is nothing to say. @throws INVALID_ARGUMENT when the patterns take too long. */
  changeOf(event: EntryEvent): FileChange | undefined {
    if (event.kind === "moved") return this.#ofMove(event);
    // A name is reported as created when an event or a scan tells of it first, and what happens to names that were never reported is of
    // the time before that.
    const isNews = event.kind === "created" ? !event.known : event.known;
    return isNews && this.#shows(event.path, event.isDirectory)
      ? this.#change(event.kind, event.path, event.isDirectory)
      : undefined;
  }

  /**
   * A file that takes the place of another one, which is how whole files are written, has modified it. A directory that moves is
   * reported whatever `include` says: what is in it moves along.
   */
  #ofMove({ from, to, fromKnown, toKnown, isDirectory }: EntryEvent & { kind: "moved" }): FileChange | undefined {
    const shows = (path: string) => (isDirectory ? this.#excluding.includes(path, true) : this.#shows(path, false));
    const left = from !== undefined && fromKnown && shows(from) ? from : undefined;
    const entered = to !== undefined && shows(to) ? to : undefined;
    if (left !== undefined && entered !== undefined) return this.#change("moved", entered, isDirectory, left);
    if (left !== undefined) return this.#change("removed", left, isDirectory);
    if (entered === undefined || !this.#shows(entered, isDirectory)) return undefined;
    if (!toKnown) return this.#change("created", entered, isDirectory);
    return isDirectory ? undefined : this.#change("modified", entered, false);
  }

  #shows(path: string, isDirectory: boolean): boolean {
    return this.#filter.includes(path, isDirectory);
  }

  #change(kind: FileChangeKind, path: string, isDirectory: boolean, from?: string): FileChange {
    const fromPath = from === undefined ? undefined : this.absolute(from);
    return { kind, path: this.absolute(path), fromPath, isDirectory, timeMs: Date.now() };
  }
}
