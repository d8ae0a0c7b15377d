import { PicodError } from "../../errors/picod-error.js";
import type { DirectoryWatchEvent } from "./directory-watch.js";

/** Events that may wait for a taker; some hundred bytes each. */
const MAX_WAITING_EVENTS = 50_000;
/** So long a taker may be behind after events were lost. */
const MAX_OVERFLOW_MS = 60_000;

/** What has not been taken yet, up to a limit: what comes then is lost, and that is told when the rest has been taken. */
export class WaitingEvents {
  readonly #path: string;
  #events: DirectoryWatchEvent[] = [];
  #taken = 0;
  #overflowed = false;
  #last: DirectoryWatchEvent | undefined;
  #givingUp: NodeJS.Timeout | undefined;
  #wake: () => void = () => undefined;
  onGivenUp: () => void = () => undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get isEmpty(): boolean {
    return this.#events.length === this.#taken && !this.#overflowed && this.#last === undefined;
  }

  push(event: DirectoryWatchEvent): void {
    if (event.kind === "ended" || event.kind === "failed") this.#last = event;
    else if (this.#overflowed || this.#events.length - this.#taken >= MAX_WAITING_EVENTS) this.#overflow();
    else if (!repeats(this.#events.at(-1), event) || this.#taken === this.#events.length) this.#events.push(event);
    this.#wake();
  }

  take(): DirectoryWatchEvent | undefined {
    const event = this.#events[this.#taken];
    if (event !== undefined) {
      this.#taken++;
      if (this.#taken === this.#events.length) {
        this.#events = [];
        this.#taken = 0;
      }
      return event;
    }
    if (this.#overflowed) {
      this.#overflowed = false;
      clearTimeout(this.#givingUp);
      return { kind: "overflow" };
    }
    return this.#last;
  }

  /** Resolves at the next event, or when somebody else wakes. */
  news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake();
  }

  close(): void {
    clearTimeout(this.#givingUp);
  }

  #overflow(): void {
    if (this.#overflowed) return;
    this.#overflowed = true;
    this.#givingUp = setTimeout(() => {
      const message = `cannot watch ${this.#path}: ${this.#events.length - this.#taken} events wait to be taken`;
      this.#events = [];
      this.#taken = 0;
      this.#overflowed = false;
      this.#last = { kind: "failed", error: new PicodError("WATCHER_TOO_SLOW", message, { path: this.#path }) };
      this.onGivenUp();
    }, MAX_OVERFLOW_MS);
  }
}

/** The same again of the same path says nothing new; the kernel, too, makes one of those that wait one behind the other. */
function repeats(last: DirectoryWatchEvent | undefined, next: DirectoryWatchEvent): boolean {
  if (last?.kind !== "change" || next.kind !== "change") return false;
  const { kind, path } = next.change;
  return (kind === "modified" || kind === "attributes") && last.change.kind === kind && last.change.path === path;
}
