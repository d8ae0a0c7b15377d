import { PicodError } from "../errors/picod-error.js";
import type { Capability } from "../policy/capability.js";
import type { ProcessEnd } from "./managed-process.js";
import { OutputBudget } from "./output-budget.js";
import { assertMayUse, mayUse } from "./permit-command.js";
import { type ProcessNames, ProcessRecord, type RunsAs, type StartedFrom } from "./process-record.js";
import { fieldName, sameText } from "./same-request.js";
import { TagIndex } from "./tag-index.js";

/** How long, how many and how much of ended processes is kept. */
export interface ProcessRetention {
  readonly retainMs: number;
  readonly maxRecords: number;
  /** Output of all processes together, live ones included. */
  readonly maxOutputBytes: number;
  /** Output of one stream. */
  readonly maxStreamBytes: number;
}

export type ProcessSelector = { readonly id: string } | { readonly tag: string };

export type RegistryEvent =
  | { readonly kind: "started" | "updated" | "ended"; readonly record: ProcessRecord }
  | { readonly kind: "deleted"; readonly record: ProcessRecord };

/** Long-lived processes by id and by tag, live ones and those whose end is still kept. */
export class ProcessRegistry {
  readonly #retention: ProcessRetention;
  readonly #byId = new Map<string, ProcessRecord>();
  readonly #byTag = new TagIndex();
  readonly #budget: OutputBudget;
  /** In the order in which they ended. */
  readonly #ended = new Map<ProcessRecord, NodeJS.Timeout>();
  /** Output of those that have ended. */
  #endedBytes = 0;
  readonly #listeners = new Set<(event: RegistryEvent) => void>();
  readonly #trimmedListeners: ((bytes: number) => void)[] = [];
  readonly #tellTrimmed = (bytes: number) => {
    for (const listener of this.#trimmedListeners) listener(bytes);
  };

  constructor(retention: ProcessRetention) {
    this.#retention = retention;
    // The other half is for those that have ended.
    this.#budget = new OutputBudget(retention.maxOutputBytes / 2, retention.maxStreamBytes);
  }

  /** Calls back with what a follower has missed of the output of a process. */
  onTrimmed(listener: (bytes: number) => void): void {
    this.#trimmedListeners.push(listener);
  }

  /** Those that somebody with that capability may see, oldest first. */
  list(capability: Capability | undefined): ProcessRecord[] {
    return [...this.#byId.values()].filter(({ from }) => mayUse(capability, from.owner));
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /**
   * Of a tag the one that lives, else the one that ended last, of those that somebody with that capability may use.
   * @throws PROCESS_NOT_FOUND; POLICY_DENIED when it was started with another capability than the caller's.
   */
  find(selector: ProcessSelector, capability: Capability | undefined): ProcessRecord {
    const tagged = "tag" in selector ? this.#byTag.all(selector.tag) : [];
    const found =
      "id" in selector ? this.#byId.get(selector.id) : (tagged.find(({ from }) => mayUse(capability, from.owner)) ?? tagged[0]);
    const what = "id" in selector ? `id ${selector.id}` : `tag ${selector.tag}`;
    if (found !== undefined) {
      // Whoever knows the tag need not learn the id.
      assertMayUse(capability, { id: "id" in selector ? found.id : what, owner: found.from.owner });
      return found;
    }
    throw new PicodError("PROCESS_NOT_FOUND", `no such process: ${what}`);
  }

  /**
   * The record of this id when there is one and it was started from the same. @throws PROCESS_ID_CONFLICT naming what differs.
   */
  findSame(id: string, from: StartedFrom): ProcessRecord | undefined {
    const known = this.#byId.get(id);
    if (known === undefined) return undefined;
    for (const [name, value] of Object.entries(from)) {
      if (sameText(known.from[name as keyof StartedFrom]) === sameText(value)) continue;
      const field = fieldName(name);
      throw new PicodError("PROCESS_ID_CONFLICT", `id ${id} belongs to another process: ${field} differs`, { id, field });
    }
    return known;
  }

  /** A record that is not in the registry yet: `add` follows when the process has started. @throws TAG_IN_USE. */
  create(id: string, from: StartedFrom, names: ProcessNames, runsAs: RunsAs, capability: Capability | undefined): ProcessRecord {
    this.#assertTagFree(names.tag, capability);
    return new ProcessRecord(id, from, names, runsAs, this.#budget, this.#tellTrimmed);
  }

  add(record: ProcessRecord): void {
    this.#byId.set(record.id, record);
    this.#byTag.add(record);
    this.#tell({ kind: "started", record });
  }

  /** @throws TAG_IN_USE. */
  update(record: ProcessRecord, tag: string | undefined, label: string | undefined, capability: Capability | undefined): void {
    if (tag !== undefined && tag !== record.tag) {
      if (record.end === undefined) this.#assertTagFree(tag, capability);
      this.#byTag.remove(record);
      record.tag = tag;
      this.#byTag.add(record);
    }
    if (label !== undefined) record.label = label;
    this.#tell({ kind: "updated", record });
  }

  ended(record: ProcessRecord, end: ProcessEnd): void {
    this.#byTag.remove(record);
    record.ended(end);
    this.#byTag.add(record);
    this.#endedBytes += record.keptBytes;
    this.#ended.set(record, setTimeout(() => this.delete(record), this.#retention.retainMs).unref());
    this.#tell({ kind: "ended", record });
    this.#enforceRetention();
  }

  /** @throws PROCESS_RUNNING. */
  delete(record: ProcessRecord): void {
    if (record.end === undefined) {
      throw new PicodError("PROCESS_RUNNING", `cannot delete process ${record.id}: it is running`, { id: record.id });
    }
    clearTimeout(this.#ended.get(record));
    if (this.#ended.delete(record)) this.#endedBytes -= record.keptBytes;
    this.#byTag.remove(record);
    if (!this.#byId.delete(record.id)) return;
    this.#tell({ kind: "deleted", record });
  }

  /** Calls back on every event, whosesoever. Returns the function that stops it. */
  watch(listener: (event: RegistryEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const timer of this.#ended.values()) clearTimeout(timer);
  }

  #enforceRetention(): void {
    const { maxRecords, maxOutputBytes } = this.#retention;
    for (const record of this.#ended.keys()) {
      if (this.#ended.size <= maxRecords && this.#endedBytes <= maxOutputBytes / 2) break;
      this.delete(record);
    }
  }

  /** Who may not use the process that has it is not told which one that is. */
  #assertTagFree(tag: string, capability: Capability | undefined): void {
    const holder = tag === "" ? undefined : this.#byTag.findLive(tag);
    if (holder === undefined) return;
    if (!mayUse(capability, holder.from.owner)) throw new PicodError("TAG_IN_USE", `tag ${tag} is in use`, { tag });
    throw new PicodError("TAG_IN_USE", `tag ${tag} is in use by process ${holder.id}`, { tag, id: holder.id });
  }

  #tell(event: RegistryEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
