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

/** So many of those that have ended are remembered, for a while. */
const MAX_ENDED = 32;

/** Knows which calls are in progress. */
export class CallsInProgress {
  readonly #running = new Set<Call>();
  readonly #ended: { readonly call: Call; readonly endedAt: number }[] = [];
  readonly #onBegin: (kind: CallKind) => void;
  readonly #counts: Record<CallKind, number> = { public: 0, following: 0, working: 0 };
  #waiting: { readonly kinds: readonly CallKind[]; readonly resolve: () => void }[] = [];

  constructor(onBegin: (kind: CallKind) => void = () => undefined) {
    this.#onBegin = onBegin;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Those that have run at a time or later, on the clock of performance.now(), the latest first. Of those that have ended, some. */
  since(time: number): Call[] {
    const ended = this.#ended.filter(({ endedAt }) => endedAt >= time).map(({ call }) => call);
    return [...ended, ...this.#running].sort((one, other) => other.startedAt - one.startedAt);
  }

  /** Those that needed no token. */
  get publicCount(): number {
    return this.#counts.public;
  }

  get isAtWork(): boolean {
    return this.#counts.working > 0;
  }

  /** Counts a call until `run` has settled. */
  async count<T>(kind: CallKind, call: Call, run: () => Promise<T>): Promise<T> {
    this.#onBegin(kind);
    this.#running.add(call);
    this.#counts[kind]++;
    try {
      return await run();
    } finally {
      this.#counts[kind]--;
      this.#running.delete(call);
      if (this.#ended.push({ call, endedAt: performance.now() }) > MAX_ENDED) this.#ended.shift();
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
