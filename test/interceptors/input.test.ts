import { describe, expect, it } from "vitest";
import { inputInterceptor } from "../../src/interceptors/input.js";

type Request = Parameters<ReturnType<typeof inputInterceptor>>[0];

/** The messages of a call as a façade gets them. */
async function messagesOf(message: AsyncIterable<number>, signal: AbortSignal): Promise<AsyncIterator<number>> {
  let seen: AsyncIterable<number> | undefined;
  const next = async (request: Request) => {
    seen = request.message as unknown as AsyncIterable<number>;
    return {} as never;
  };
  await inputInterceptor(next)({ stream: true, message, signal } as unknown as Request);
  if (seen === undefined) throw new Error("no messages");
  return seen[Symbol.asyncIterator]();
}

async function* oneThenSilence() {
  yield 1;
  await new Promise(() => undefined);
}

describe("inputInterceptor", () => {
  it("passes messages and their end on", async () => {
    async function* messages() {
      yield* [1, 2];
    }
    const input = await messagesOf(messages(), new AbortController().signal);
    await expect(Promise.all([input.next(), input.next(), input.next()])).resolves.toEqual([
      { done: false, value: 1 },
      { done: false, value: 2 },
      { done: true, value: undefined },
    ]);
  });

  it("wakes a façade that waits for a message when the call is aborted", async () => {
    const abort = new AbortController();
    const input = await messagesOf(oneThenSilence(), abort.signal);
    await expect(input.next()).resolves.toEqual({ done: false, value: 1 });
    const waiting = input.next();
    abort.abort(new Error("the deadline passed"));
    await expect(waiting).rejects.toThrow("the deadline passed");
    await expect(input.next()).rejects.toThrow("the deadline passed");
  });
});
