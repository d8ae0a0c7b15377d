/** What the daemon is asked for between two signs of life; silence for twice as long is a dead connection. */
export const KEEPALIVE_SECONDS = 10;
const SILENCE_MS = 2 * KEEPALIVE_SECONDS * 1000 + 5_000;

/** Aborts when nothing arrives for longer than keepalives may take; how long the taker is busy does not count. */
export async function* unlessSilent<T>(messages: AsyncIterable<T>, abort: AbortController): AsyncGenerator<T> {
  const iterator = messages[Symbol.asyncIterator]();
  for (;;) {
    const timer = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const next = await iterator.next();
      if (next.done) return;
      clearTimeout(timer);
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
