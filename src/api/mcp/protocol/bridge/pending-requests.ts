import type { RequestId } from "@modelcontextprotocol/sdk/types.js";

interface Pending {
  /** The daemon has it. */
  accepted: boolean;
  /** Id of the last event of its stream; undefined: none has come, and the stream cannot be taken up again. */
  lastEventId: string | undefined;
}

/** So many streams whose last answer has come are remembered, for those who would take them up again. */
const MAX_FINISHED = 256;

/** What the client has asked for and has not been told yet. */
export class PendingRequests {
  readonly #pending = new Map<RequestId, Pending>();
  readonly #finished = new Set<string>();

  add(id: RequestId): void {
    this.#pending.set(id, { accepted: false, lastEventId: undefined });
  }

  accepted(id: RequestId): void {
    const found = this.#pending.get(id);
    if (found !== undefined) found.accepted = true;
  }

  eventCame(id: RequestId, eventId: string): void {
    const found = this.#pending.get(id);
    if (found !== undefined) found.lastEventId = eventId;
  }

  /** False when it was answered, or given up, before. */
  take(id: RequestId): boolean {
    const lastEventId = this.#pending.get(id)?.lastEventId;
    if (lastEventId !== undefined) {
      this.#finished.add(lastEventId);
      const [oldest] = this.#finished;
      if (this.#finished.size > MAX_FINISHED && oldest !== undefined) this.#finished.delete(oldest);
    }
    return this.#pending.delete(id);
  }

  canResume(id: RequestId): boolean {
    return this.#pending.get(id)?.lastEventId !== undefined;
  }

  /** Whose stream goes on behind that event; "nobody" when it has had its answer; undefined for streams of no request. */
  waitingAfter(eventId: string): RequestId | "nobody" | undefined {
    if (this.#finished.has(eventId)) return "nobody";
    return [...this.#pending].find(([, { lastEventId }]) => lastEventId === eventId)?.[0];
  }

  /** Those that the daemon has, or had. */
  get allAccepted(): RequestId[] {
    return [...this.#pending].filter(([, { accepted }]) => accepted).map(([id]) => id);
  }
}
