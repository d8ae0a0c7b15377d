import { connect, type Socket } from "node:net";

/**
 * A connection to the first of these addresses that takes it, all of them together tried for `timeoutMs` at most.
 * @throws the errno of the last; ETIMEDOUT; the signal's reason.
 */
export async function connectToAny(
  addresses: readonly { readonly address: string; readonly family: number }[],
  port: number,
  timeoutMs: number,
  abortSignal: AbortSignal,
): Promise<Socket> {
  const timedOut = new AbortController();
  const timeout = setTimeout(() => {
    timedOut.abort(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" }));
  }, timeoutMs).unref();
  const signal = AbortSignal.any([abortSignal, timedOut.signal]);
  let failure: unknown;
  try {
    for (const { address, family } of addresses) {
      signal.throwIfAborted();
      try {
        return await connectTo(address, family, port, signal);
      } catch (error) {
        failure = error;
      }
    }
  } finally {
    clearTimeout(timeout);
  }
  throw failure;
}

function connectTo(host: string, family: number, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, family, port });
    const giveUp = () => socket.destroy(signal.reason);
    signal.addEventListener("abort", giveUp);
    const settled = () => {
      signal.removeEventListener("abort", giveUp);
      socket.off("error", reject);
    };
    socket.once("connect", () => {
      settled();
      resolve(socket);
    });
    socket.once("error", reject);
    socket.once("close", settled);
  });
}
