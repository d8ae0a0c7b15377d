import type { ProcessRecord } from "./process-record.js";

/** Processes by their tags: of each tag at most one that lives, and those that have ended. */
export class TagIndex {
  readonly #live = new Map<string, ProcessRecord>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, Set<ProcessRecord>>();

  /** The live process of a tag. */
  findLive(tag: string): ProcessRecord | undefined {
    return this.#live.get(tag);
  }

  /** The processes of a tag: the one that lives, then those that have ended, the last of them first. */
  all(tag: string): ProcessRecord[] {
    const live = this.#live.get(tag);
    return [...(live === undefined ? [] : [live]), ...[...(this.#ended.get(tag) ?? [])].reverse()];
  }

  /** Where its tag and its state say. */
  add(record: ProcessRecord): void {
    const { tag } = record;
    if (tag === "") return;
    if (record.end === undefined) this.#live.set(tag, record);
    else this.#ended.set(tag, (this.#ended.get(tag) ?? new Set()).add(record));
  }

  /** To be called while it still has its tag. */
  remove(record: ProcessRecord): void {
    const { tag } = record;
    if (this.#live.get(tag) === record) this.#live.delete(tag);
    const ended = this.#ended.get(tag);
    ended?.delete(record);
    if (ended?.size === 0) this.#ended.delete(tag);
  }
}
