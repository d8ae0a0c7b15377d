/** Does the work on all items, so many at a time, in order. The first error ends the rest, and is thrown when nothing is under way. */
export async function inParallel<T>(
  items: Iterable<T>,
  workers: number,
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const leave = signal === undefined ? failed.signal : AbortSignal.any([failed.signal, signal]);
  const iterator = items[Symbol.iterator]();
  let failure: { error: unknown } | undefined;
  const worker = async () => {
    for (let next = iterator.next(); !next.done && !leave.aborted; next = iterator.next()) {
      try {
        await work(next.value, leave);
      } catch (error) {
        failure ??= { error };
        failed.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  if (failure !== undefined) throw failure.error;
  signal?.throwIfAborted();
}
