export interface Observer {
  /** The last message has been taken. */
  ended?(): void;
  /** Returns what is thrown instead. */
  failed(error: unknown): unknown;
  /** Whoever took the messages stopped, with an error or without. */
  left?(error?: unknown): void;
}

/**
 * The same messages, and somebody who is told how they end. An object, not a generator: a generator that was never started tells nothing
 * when it is returned, and costs several promises a message.
 */
export function observed<T>(messages: AsyncIterable<T>, { ended, failed, left }: Observer): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const inner = messages[Symbol.asyncIterator]();
      const taken = (result: IteratorResult<T>) => {
        if (result.done) ended?.();
        return result;
      };
      const thrown = (error: unknown): never => {
        throw failed(error);
      };
      return {
        next: () => inner.next().then(taken, thrown),
        async return(value?: unknown) {
          left?.();
          return (await inner.return?.(value)) ?? { done: true, value };
        },
        async throw(error?: unknown) {
          left?.(error);
          if (inner.throw === undefined) throw error;
          return inner.throw(error);
        },
      };
    },
  };
}
