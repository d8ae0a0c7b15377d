import type { StreamName } from "./managed-process.js";
import type { ProcessRecord } from "./process-record.js";

/** Waits until something was printed behind one of the offsets, the process has ended, or so long. @throws the signal's reason. */
export async function awaitOutput(
  record: ProcessRecord,
  offsets: ReadonlyMap<StreamName, number>,
  timeoutMs: number,
  abortSignal: AbortSignal,
): Promise<void> {
  abortSignal.throwIfAborted();
  const hasNews = () =>
    record.end !== undefined || [...record.logs].some(([stream, { end }]) => end > (offsets.get(stream) ?? 0));
  if (timeoutMs === 0 || hasNews()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(abortSignal.reason);
  const timer = setTimeout(resolve, timeoutMs);
  const stopListening = record.onChange(() => hasNews() && resolve());
  abortSignal.addEventListener("abort", onAbort);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    stopListening();
    abortSignal.removeEventListener("abort", onAbort);
  }
}
