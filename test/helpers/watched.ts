import { DirectoryWatch, type DirectoryWatchEvent } from "../../src/filesystem/watching/directory-watch.js";
import type { WatchOptions } from "../../src/filesystem/watching/file-change.js";
import { KernelWatches } from "../../src/filesystem/watching/kernel-watches.js";
import { eventually } from "./eventually.js";
import { accessAs } from "./file-access.js";
import { descriptorInfo, openDescriptors } from "./open-descriptors.js";

const NEVER = new AbortController().signal;

/** A watch of a directory, and everything that it was told. Use with `await using`. */
export class Watched implements AsyncDisposable {
  readonly events: DirectoryWatchEvent[] = [];
  readonly watch: DirectoryWatch;
  readonly directory: string;
  readonly #own: KernelWatches | undefined;

  private constructor(directory: string, options: WatchOptions, user: string, watches?: KernelWatches) {
    this.directory = directory;
    this.#own = watches === undefined ? new KernelWatches() : undefined;
    const kernel = watches ?? (this.#own as KernelWatches);
    this.watch = new DirectoryWatch(kernel, accessAs(user), directory, options, (event) => this.events.push(event));
  }

  static async open(directory: string, options: WatchOptions = {}, user = "root", watches?: KernelWatches): Promise<Watched> {
    const watched = new Watched(directory, options, user, watches);
    await watched.watch.open(NEVER);
    return watched;
  }

  /** What has been told so far, in short: "created a/b", "moved a > b", "overflow"; directories end with a slash. */
  get told(): string[] {
    return this.events.map((event) => this.#inShort(event));
  }

  /** What has happened until now, told since the last time that this was asked. */
  async since(): Promise<string[]> {
    await this.watch.settled();
    const told = this.told;
    this.events.length = 0;
    return told;
  }

  async tells(what: string): Promise<void> {
    await eventually(`"${what}" is told`, () => this.told.includes(what));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.watch.close();
    if (this.#own === undefined) return;
    this.#own.close();
    await eventually("the instance is closed", () => inotifyWatches().length === 0);
  }

  #inShort(event: DirectoryWatchEvent): string {
    if (event.kind === "overflow") return "overflow";
    if (event.kind === "failed") return `failed ${event.error}`;
    if (event.kind === "ended") return `ended: ${event.message.replace(`${this.directory} `, "")}`;
    if (event.kind === "unwatched") return `unwatched ${this.#relative(event.path)} ${event.reason}`;
    const { kind, path, fromPath, isDirectory } = event.change;
    const slash = isDirectory ? "/" : "";
    const from = fromPath === undefined ? "" : `${this.#relative(fromPath)}${slash} > `;
    return `${kind} ${from}${this.#relative(path)}${slash}`;
  }

  #relative(path: string): string {
    return path === this.directory ? "." : path.slice(this.directory.length + 1);
  }
}

/** How many inotify watches each instance of a process has, its own mark not counted. */
export function inotifyWatches(pid: number | "self" = "self"): number[] {
  return openDescriptors(pid)
    .filter(({ target }) => target === "anon_inode:inotify")
    .map(({ fd }) => [...descriptorInfo(pid, fd).matchAll(/^inotify wd:/gm)].length - 1)
    .filter((watches) => watches >= 0);
}
