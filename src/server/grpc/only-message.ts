import { Code, ConnectError } from "@connectrpc/connect";

/** The message of a call that has exactly one. @throws UNIMPLEMENTED for none and for more, as the RPC library does. */
export async function onlyMessage<T>(messages: AsyncIterable<T>, kind: "unary" | "server-streaming"): Promise<T> {
  const iterator = messages[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) throw new ConnectError(`protocol error: missing input message for ${kind} method`, Code.Unimplemented);
  const second = await iterator.next();
  if (!second.done) throw new ConnectError(`protocol error: received extra input message for ${kind} method`, Code.Unimplemented);
  return first.value;
}
