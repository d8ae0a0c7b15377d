import { IN, type InotifyEvent } from "../../os/inotify.js";

/** The two ends of a rename; one is absent when it is not watched. */
export interface RenameEvent {
  readonly from: InotifyEvent | undefined;
  readonly to: InotifyEvent | undefined;
}

/** The kernel writes both ends within one call, one after the other: only a thread that is put aside in between makes this long. */
const MAX_WAIT_MS = 20;

/**
 * Passes events on in their order, the two ends of a rename as one. A directory that is left waits for the other end, and with it all
 * that comes behind: what happens next may be about the same name.
 */
export class MovePairing {
  readonly #onEvent: (event: InotifyEvent) => void;
  readonly #onRename: (event: RenameEvent) => void;
  #held: { readonly event: InotifyEvent; readonly readAt: number }[] = [];
  /** Ends of renames that are held, by their cookie. */
  readonly #targets = new Map<number, InotifyEvent>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onEvent: (event: InotifyEvent) => void, onRename: (event: RenameEvent) => void) {
    this.#onEvent = onEvent;
    this.#onRename = onRename;
  }

  push(events: readonly InotifyEvent[]): void {
    const readAt = performance.now();
    for (const event of events) {
      if ((event.mask & IN.MOVED_TO) !== 0) this.#targets.set(event.cookie, event);
      this.#held.push({ event, readAt });
    }
    this.#passOn();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#held = [];
  }

  #passOn(): void {
    clearTimeout(this.#timer);
    const held = this.#held;
    let passed = 0;
    for (const { event, readAt } of held) {
      // Whoever was told has closed it.
      if (this.#held !== held) return;
      const target = this.#targets.get(event.cookie);
      if ((event.mask & IN.MOVED_FROM) !== 0) {
        const waitMs = readAt + MAX_WAIT_MS - performance.now();
        if (target === undefined && waitMs > 0) {
          this.#timer = setTimeout(() => this.#passOn(), waitMs);
          break;
        }
        this.#targets.delete(event.cookie);
        this.#onRename({ from: event, to: target });
      } else if ((event.mask & IN.MOVED_TO) !== 0) {
        // Otherwise it has gone with the other end.
        if (this.#targets.delete(event.cookie)) this.#onRename({ from: undefined, to: event });
      } else {
        this.#onEvent(event);
      }
      passed++;
    }
    if (this.#held === held) this.#held = held.slice(passed);
  }
}
