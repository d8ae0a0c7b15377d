import { setTimeout as sleep, setImmediate as turnOver } from "node:timers/promises";
import { errnoName } from "../os/system-error.js";
import { ProcessSnapshot } from "./process-snapshot.js";

/** What to look takes, and others may have all of. */
const SCARCE = ["EMFILE", "ENFILE", "ENOMEM"];
const RETRY_MS = 100;

/**
 * Looks at all processes once for everybody who asks in the same turn. A look takes as long as there are processes, and those who end many
 * of them at once ask for each.
 */
export class Census {
  #next: Promise<ProcessSnapshot> | undefined;

  /** What is alive when this turn is over, or as soon as there is a descriptor to look with. */
  take(): Promise<ProcessSnapshot> {
    this.#next ??= look().finally(() => {
      this.#next = undefined;
    });
    return this.#next;
  }
}

async function look(): Promise<ProcessSnapshot> {
  await turnOver();
  for (;;) {
    try {
      return new ProcessSnapshot();
    } catch (error) {
      if (!SCARCE.includes(errnoName(error) ?? "")) throw error;
    }
    await sleep(RETRY_MS);
  }
}
