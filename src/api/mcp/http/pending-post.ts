/** So long the calls of a broken connection go on for a client that can take up their stream again. */
const RESUME_MS = 30_000;

/** The requests of one POST, from their arrival to their last answer, whatever becomes of the connection that brought them. */
export class PendingPost {
  /** What its answers are kept as; undefined until the client knows where it would go on. */
  streamId: string | undefined;
  readonly #unanswered: Set<unknown>;
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  readonly #onOver: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param onOver called once, when all is answered or given up. */
  constructor(body: unknown, onOver: () => void) {
    const messages: unknown[] = Array.isArray(body) ? body : [body];
    const ids = messages.map((message) => (message as { id?: unknown; method?: unknown } | null) ?? {});
    this.#unanswered = new Set(
      ids
        .filter(({ method }) => method !== undefined)
        .map(({ id }) => id)
        .filter((id) => id !== undefined),
    );
    this.#onOver = onOver;
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

  answered(id: unknown): void {
    this.#unanswered.delete(id);
  }

  /** The last of its answers has left, or nobody asks for it. */
  delivered(): void {
    clearTimeout(this.#timer);
    this.#over.resolve();
    this.#onOver();
  }

  /** Its calls are cancelled at once when the client has nothing to come back with, else after a while. */
  connectionLost(): void {
    if (this.streamId === undefined) this.#giveUp();
    else this.#timer = setTimeout(() => this.#giveUp(), RESUME_MS).unref();
  }

  resumed(): void {
    clearTimeout(this.#timer);
  }

  #giveUp(): void {
    this.#abort.abort(new DOMException("the caller has gone", "AbortError"));
    this.#over.resolve();
    this.#onOver();
  }
}
