/** Of a failed install or build, whose message holds all that it printed. */
const MESSAGE_LIMIT = 2000;

/** Runs a program that leaves nothing behind, also when it is told to stop: `main({ stack, signal })` defers what has to be undone. */
export async function runToEnd(main) {
  const stack = new AsyncDisposableStack();
  const stopping = new AbortController();
  let cleanedUp;
  /** Once, whoever asks first: the end, or a signal. */
  const cleanUp = () => (cleanedUp ??= stack.disposeAsync());
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      progress("stopping");
      stopping.abort();
      void cleanUp().finally(() => process.exit(1));
    });
  }
  try {
    await main({ stack, signal: stopping.signal });
  } catch (error) {
    // What breaks because everything is being stopped is no news.
    if (!stopping.signal.aborted) progress(error.message.slice(0, MESSAGE_LIMIT));
    process.exitCode = 1;
  } finally {
    await cleanUp();
  }
}

export function progress(text) {
  process.stderr.write(`bench: ${text}\n`);
}
