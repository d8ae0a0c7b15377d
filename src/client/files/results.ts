import type { CallOptions } from "@connectrpc/connect";
import { afterFailure } from "../insistently.js";
import { Retries } from "../retries.js";
import type { Connection } from "../transport.js";

/** Results as they come, once. Breaking off ends the call. After a broken connection it goes on behind the last one. */
export interface Results<T, S> extends AsyncIterable<T> {
  /** About all of them; undefined until the iteration has come to its end. */
  readonly summary: S | undefined;
}

/** Some results, and with the last of them the summary. */
export interface Batch<T, S> {
  readonly items: readonly T[];
  readonly summary?: S | undefined;
}

/** `compare` is the order in which the daemon sends. */
export function results<T, S>(
  connection: Connection,
  signal: AbortSignal | undefined,
  ask: (options: CallOptions) => AsyncIterable<Batch<T, S>>,
  compare: (a: T, b: T) => number,
): Results<T, S> {
  const all: { summary: S | undefined } & AsyncIterable<T> = { summary: undefined, [Symbol.asyncIterator]: iterate };

  async function* iterate(): AsyncGenerator<T> {
    let last: T | undefined;
    const leave = new AbortController();
    const ended = AbortSignal.any([leave.signal, connection.closed, ...(signal === undefined ? [] : [signal])]);
    try {
      for (const retries = new Retries(ended); ; ) {
        try {
          signal?.throwIfAborted();
          let seen = last;
          for await (const { items, summary } of ask({ signal: ended })) {
            for (const item of items) {
              if (seen !== undefined && compare(item, seen) <= 0) continue;
              seen = undefined;
              last = item;
              retries.succeeded();
              yield item;
            }
            if (summary !== undefined) all.summary = summary;
          }
          return;
        } catch (error) {
          await afterFailure(retries, error, signal);
        }
      }
    } finally {
      leave.abort();
    }
  }

  return all;
}
