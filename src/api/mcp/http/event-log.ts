import type { EventStore } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

/** Of all clients together. */
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_EVENTS = 10_000;
/** Who has not come back by then does not. */
const RETAIN_MS = 5 * 60_000;

interface StoredEvent {
  readonly owner: object;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
  readonly storedAt: number;
}

/** The last messages that went out on streams, for clients whose connection has broken: a stream goes on behind the last that they have. */
export class EventLog {
  /** Oldest first. */
  readonly #events = new Map<string, StoredEvent>();
  #bytes = 0;
  #nextNumber = 1;
  #expiry: NodeJS.Timeout | undefined;

  /** Those of one session; nobody else's are ever found there. @param onStored called with every message. */
  storeFor(owner: object, onStored: (message: JSONRPCMessage) => void): EventStore {
    return {
      storeEvent: async (streamId, message) => {
        onStored(message);
        return this.#add({ owner, streamId, message, bytes: sizeOf(message), storedAt: performance.now() });
      },
      getStreamIdForEventId: async (id) => this.streamOf(owner, id),
      replayEventsAfter: async (id, { send }) => {
        const streamId = this.streamOf(owner, id) ?? "";
        let isBehind = false;
        for (const [eventId, event] of [...this.#events]) {
          if (isBehind && event.owner === owner && event.streamId === streamId) await send(eventId, event.message);
          isBehind ||= eventId === id;
        }
        return streamId;
      },
    };
  }

  /** Undefined when the event is not, or no longer, kept. */
  streamOf(owner: object, id: string): string | undefined {
    const event = this.#events.get(id);
    return event?.owner === owner ? event.streamId : undefined;
  }

  forget(owner: object): void {
    for (const [id, event] of this.#events) if (event.owner === owner) this.#drop(id, event);
  }

  #add(event: StoredEvent): string {
    const id = `${event.streamId}.${this.#nextNumber++}`;
    this.#events.set(id, event);
    this.#bytes += event.bytes;
    this.#dropOldest();
    this.#expiry ??= setInterval(() => this.#dropOldest(), RETAIN_MS).unref();
    return id;
  }

  #dropOldest(): void {
    const expired = performance.now() - RETAIN_MS;
    for (const [id, event] of this.#events) {
      if (this.#bytes <= MAX_BYTES && this.#events.size <= MAX_EVENTS && event.storedAt > expired) break;
      this.#drop(id, event);
    }
    if (this.#events.size > 0) return;
    clearInterval(this.#expiry);
    this.#expiry = undefined;
  }

  #drop(id: string, { bytes }: StoredEvent): void {
    this.#events.delete(id);
    this.#bytes -= bytes;
  }
}

/** About as long as its JSON, without making that of a large file once more. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + sizeOf(member), 8);
}
