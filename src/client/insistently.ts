import type { CallOptions } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { Retries } from "./retries.js";
import type { Connection } from "./transport.js";

/**
 * Makes a call that is safe to repeat, again and again while the connection breaks. The call says `succeeded` when it has got on, and
 * passes the options on to the daemon. What is not an error of the connection, such as one of the local disk, ends it.
 */
export async function insistently<T>(
  connection: Connection,
  signal: AbortSignal | undefined,
  call: (options: CallOptions, retries: Retries) => Promise<T>,
): Promise<T> {
  const leave = signal === undefined ? connection.closed : AbortSignal.any([connection.closed, signal]);
  const options = signal === undefined ? {} : { signal };
  for (const retries = new Retries(leave); ; ) {
    try {
      signal?.throwIfAborted();
      return await call(options, retries);
    } catch (error) {
      await afterFailure(retries, error, signal);
    }
  }
}

export function cancelled(signal: AbortSignal): ConnectError {
  const { reason } = signal;
  return new ConnectError(
    reason instanceof Error ? reason.message : "it was cancelled",
    Code.Canceled,
    undefined,
    undefined,
    reason,
  );
}

/** Waits until the call can be made again. @throws what repeating does not help; CANCELED when the signal is aborted. */
export async function afterFailure(retries: Retries, error: unknown, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) throw cancelled(signal);
  if (!(error instanceof ConnectError)) throw error;
  try {
    await retries.after(error);
  } catch (failure) {
    throw signal?.aborted ? cancelled(signal) : failure;
  }
}
