const MAX_WRITES = 1024;

/** What the last writes to one process were answered, by their keys: a repeated one is not written again. */
export class AcceptedWrites {
  /** In the order in which they were accepted. */
  readonly #answers = new Map<string, number>();

  answerOf(writeId: string): number | undefined {
    return this.#answers.get(writeId);
  }

  remember(writeId: string, answer: number): void {
    this.#answers.set(writeId, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MAX_WRITES && oldest !== undefined) this.#answers.delete(oldest);
  }
}
