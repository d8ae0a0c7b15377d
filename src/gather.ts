/** Waiting for one write; less would leave the writer idle, more is memory. */
const MAX_BYTES = 1024 * 1024;

/**
 * Joins the chunks that arrive while the ones before are being worked on: to write each of them alone costs a thread's turn a time. They must
 * not be used again by whoever makes them.
 */
export async function* gather(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const waiting: Uint8Array[] = [];
  let bytes = 0;
  let end: { readonly error?: unknown } | undefined;
  let left = false;
  let wake: () => void = () => undefined;
  const change = () => new Promise<void>((resolve) => (wake = resolve));

  const read = async () => {
    for await (const chunk of chunks) {
      waiting.push(chunk);
      bytes += chunk.length;
      wake();
      while (bytes >= MAX_BYTES && !left) await change();
      if (left) return;
    }
  };
  read().then(
    () => {
      end = {};
      wake();
    },
    (error: unknown) => {
      end = { error };
      wake();
    },
  );
  try {
    for (;;) {
      while (bytes === 0 && end === undefined) await change();
      // What has arrived before an error is of no use without the rest.
      if (end !== undefined && "error" in end) throw end.error;
      if (bytes === 0) return;
      const taken = waiting.splice(0);
      bytes = 0;
      wake();
      yield taken.length === 1 ? (taken[0] as Uint8Array) : Buffer.concat(taken);
    }
  } finally {
    left = true;
    wake();
  }
}
