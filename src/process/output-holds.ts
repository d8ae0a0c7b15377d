import { PicodError } from "../errors/picod-error.js";
import type { StreamName } from "./managed-process.js";
import { OutputHold } from "./output-hold.js";
import type { ProcessRecord } from "./process-record.js";

const MAX_HOLDS = 16;

/** The followers of one process that acknowledge its output, by their ids. */
export class OutputHolds {
  readonly #record: ProcessRecord;
  readonly #holds = new Map<string, { readonly hold: OutputHold; readonly release: () => void }>();

  constructor(record: ProcessRecord) {
    this.#record = record;
  }

  /**
   * The hold of that follower, from now on connected; a new one when it has none. What lies before `offsets` counts as acknowledged.
   * @throws FOLLOWER_LIMIT_REACHED.
   */
  connect(followerId: string, offsets: ReadonlyMap<StreamName, number>, holdMs: number): OutputHold {
    const known = this.#holds.get(followerId)?.hold;
    const hold = known ?? this.#add(followerId, offsets, holdMs);
    hold.connect(holdMs);
    hold.acknowledge(offsets);
    this.#record.release();
    return hold;
  }

  /** @throws FOLLOWER_NOT_FOUND. */
  acknowledge(followerId: string, received: ReadonlyMap<StreamName, number>): void {
    const known = this.#holds.get(followerId);
    if (known === undefined) {
      const message = `cannot acknowledge output of ${this.#record.id}: it does not wait for follower ${followerId}`;
      throw new PicodError("FOLLOWER_NOT_FOUND", message, { id: this.#record.id });
    }
    known.hold.acknowledge(received);
    this.#record.release();
  }

  /** The process waits for that follower no longer. */
  end(followerId: string): void {
    const known = this.#holds.get(followerId);
    if (known === undefined) return;
    this.#holds.delete(followerId);
    known.hold.close();
    known.release();
  }

  /** For a process that has ended: it waits for nobody. */
  close(): void {
    for (const followerId of [...this.#holds.keys()]) this.end(followerId);
  }

  #add(followerId: string, offsets: ReadonlyMap<StreamName, number>, holdMs: number): OutputHold {
    const { id } = this.#record;
    if (this.#holds.size >= MAX_HOLDS) {
      throw new PicodError("FOLLOWER_LIMIT_REACHED", `cannot follow ${id}: it waits for ${MAX_HOLDS} followers`, { id });
    }
    const hold = new OutputHold(offsets, holdMs, () => this.end(followerId));
    this.#holds.set(followerId, { hold, release: this.#record.holdFor(hold) });
    return hold;
  }
}
