import { requestIds } from "./messages.js";

/** So long the calls of a broken connection go on for a client that can take up their stream again. */
const RESUME_MS = 30_000;

export interface PendingPostParts {
  /** Called when nothing but requests that were cancelled is left: their stream is to be ended, and then it is `delivered`. */
  readonly onCancelled: (ids: readonly unknown[]) => void;
  /** Called once, when all is answered or given up. */
  readonly onOver: () => void;
}

/** The requests of one POST, from their arrival to their last answer, whatever becomes of the connection that brought them. */
export class PendingPost {
  /** What its answers are kept as; undefined until the client knows where it would go on. */
  streamId: string | undefined;
  readonly #ids: ReadonlySet<unknown>;
  readonly #unanswered: Set<unknown>;
  readonly #cancelled = new Set<unknown>();
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  readonly #parts: PendingPostParts;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(body: unknown, parts: PendingPostParts) {
    this.#ids = new Set(requestIds(body));
    this.#unanswered = new Set(this.#ids);
    this.#parts = parts;
  }

  /** Aborted when nobody waits for the answers any longer. */
  get abortSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Resolves when its answers have left, or nobody takes them any longer. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  get isAnswered(): boolean {
    return this.#unanswered.size === 0;
  }

  /** Whether the id is that of a request whose answer, or end, may still come. */
  isInUse(id: unknown): boolean {
    return this.#ids.has(id) && (!this.isAnswered || this.#cancelled.size > 0);
  }

  answered(id: unknown): void {
    this.#unanswered.delete(id);
    this.#endIfCancelled();
  }

  /** The client does not wait for that one any longer, and gets no answer. */
  cancelled(id: unknown): void {
    if (!this.#unanswered.delete(id)) return;
    this.#cancelled.add(id);
    this.#endIfCancelled();
  }

  /** The last of its answers has left, or nobody asks for it. */
  delivered(): void {
    this.#end();
  }

  /** Its calls are cancelled at once when the client has nothing to come back with, else after a while. */
  connectionLost(): void {
    if (this.#isOver) return;
    if (this.streamId === undefined) this.#giveUp();
    else this.#timer = setTimeout(() => this.#giveUp(), RESUME_MS).unref();
  }

  resumed(): void {
    clearTimeout(this.#timer);
  }

  /** The SDK ends a stream with the last answer, and waits for ever for those that do not come. */
  #endIfCancelled(): void {
    if (!this.isAnswered || this.#cancelled.size === 0 || this.#abort.signal.aborted) return;
    this.#abort.abort(new DOMException("the caller has cancelled", "AbortError"));
    this.#parts.onCancelled([...this.#cancelled]);
  }

  #giveUp(): void {
    this.#abort.abort(new DOMException("the caller has gone", "AbortError"));
    this.#end();
  }

  #end(): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve();
    this.#parts.onOver();
  }
}
