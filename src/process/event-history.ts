import type { Capability } from "../policy/capability.js";
import { mayUse } from "./permit-command.js";
import type { ProcessRegistry, RegistryEvent } from "./process-registry.js";

/** One thing that happened to a process, numbered in order. */
export interface NumberedEvent<T> {
  readonly id: number;
  readonly kind: RegistryEvent["kind"];
  readonly shown: T;
  /** The capability that the process was started with. */
  readonly owner: string | undefined;
}

/** The last events of a registry, as they were shown at the time, for readers that come back with the number of the last they saw. */
export class EventHistory<T> {
  readonly #maxEvents: number;
  #events: NumberedEvent<T>[] = [];
  /** Of the clock, so that a reader of a daemon that was here before is not taken for one that has seen our events. */
  #nextId = Date.now() * 1000;
  readonly #listeners = new Set<() => void>();
  readonly #stop: () => void;

  constructor(registry: ProcessRegistry, show: (event: RegistryEvent) => T, maxEvents: number) {
    this.#maxEvents = maxEvents;
    this.#stop = registry.watch((event) => {
      this.#events.push({ id: this.#nextId++, kind: event.kind, shown: show(event), owner: event.record.from.owner });
      if (this.#events.length > 2 * this.#maxEvents) this.#events = this.#events.slice(-this.#maxEvents);
      for (const listener of [...this.#listeners]) listener();
    });
  }

  /** Number of the last event so far. */
  get lastId(): number {
    return this.#nextId - 1;
  }

  /** Events behind that one that somebody with that capability may see. `lost` tells that there were more, which are no longer kept. */
  after(
    id: number,
    capability: Capability | undefined,
  ): { readonly events: readonly NumberedEvent<T>[]; readonly lost: boolean } {
    // Of an earlier daemon, whose clock was ahead.
    const seen = this.#events.filter(({ owner }) => mayUse(capability, owner));
    if (id > this.lastId) return { events: seen, lost: true };
    const oldest = this.#events[0]?.id ?? this.#nextId;
    return { events: seen.filter((event) => event.id > id), lost: id + 1 < oldest };
  }

  /** Calls back on every event. Returns the function that stops it. */
  onEvent(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#stop();
  }
}
