/** What `waiting` resolves with; the signal's reason when it aborts first. What is waited for goes on. */
export function unlessAborted<T>(waiting: Promise<T>, abortSignal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortSignal.reason);
    if (abortSignal.aborted) onAbort();
    abortSignal.addEventListener("abort", onAbort, { once: true });
    waiting.then(resolve, reject).finally(() => abortSignal.removeEventListener("abort", onAbort));
  });
}
