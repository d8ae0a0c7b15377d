import { FOLLOWING_RPCS } from "../api/routes.js";
import type { Call } from "../call.js";

/**
 * `public` calls needed no token. `following` ones last as long as what they follow, and are told when the daemon stops. The others
 * are at work, and get time to finish.
 */
export type CallKind = "public" | "following" | "working";

/** Of an RPC, by who let it in and by its path. */
export function callKind(caller: Call["caller"], path: string): CallKind {
  if (caller?.how === "public") return "public";
  return FOLLOWING_RPCS.has(path) ? "following" : "working";
}

/** Knows how many calls are in progress. */
export class CallsInProgress {
  readonly #counts: Record<CallKind, number> = { public: 0, following: 0, working: 0 };
  #waiting: { readonly kinds: readonly CallKind[]; readonly resolve: () => void }[] = [];

  /** Those that needed no token. */
  get publicCount(): number {
    return this.#counts.public;
  }

  /** Counts a call until `run` has settled. */
  async count<T>(kind: CallKind, run: () => Promise<T>): Promise<T> {
    this.#counts[kind]++;
    try {
      return await run();
    } finally {
      this.#counts[kind]--;
      this.#tellWaiting();
    }
  }

  /** Resolves when none of these kinds is in progress. Whoever follows something may do so for ever, or take no answer. */
  idle(kinds: readonly CallKind[]): Promise<void> {
    return this.#isIdle(kinds) ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ kinds, resolve }));
  }

  #isIdle(kinds: readonly CallKind[]): boolean {
    return kinds.every((kind) => this.#counts[kind] === 0);
  }

  #tellWaiting(): void {
    this.#waiting = this.#waiting.filter(({ kinds, resolve }) => {
      const idle = this.#isIdle(kinds);
      if (idle) resolve();
      return !idle;
    });
  }
}
