import { describe, expect, it } from "vitest";
import { type CallEnd, onEnd } from "../../src/interceptors/on-end.js";

type Next = Parameters<typeof onEnd>[0];
type Request = Parameters<typeof onEnd>[1];
type Response = Awaited<ReturnType<Next>>;

const REQUEST = {} as Request;

/** Runs a call whose answer is a stream of these messages, and then that error. */
async function stream(messages: readonly number[], error?: unknown) {
  async function* message() {
    yield* messages;
    if (error !== undefined) throw error;
  }
  const ends: CallEnd[] = [];
  const response = await onEnd(
    async () => ({ stream: true, message: message() }) as unknown as Response,
    REQUEST,
    (end) => void ends.push(end),
  );
  return { ends, messages: response.message as unknown as AsyncIterable<number> };
}

describe("onEnd", () => {
  it("reports a unary call when it has returned or thrown", async () => {
    const ends: CallEnd[] = [];
    const report = (end: CallEnd) => void ends.push(end);
    await onEnd(async () => ({ stream: false }) as Response, REQUEST, report);
    const error = new Error("failed");
    await expect(onEnd(() => Promise.reject(error), REQUEST, report)).rejects.toBe(error);
    expect(ends).toEqual([
      { error: undefined, abandoned: false },
      { error, abandoned: false },
    ]);
  });

  it("reports a stream when its last message was taken, once", async () => {
    const { ends, messages } = await stream([1, 2]);
    const taken: number[] = [];
    for await (const message of messages) {
      expect(ends).toEqual([]);
      taken.push(message);
    }
    expect(taken).toEqual([1, 2]);
    expect(ends).toEqual([{ error: undefined, abandoned: false }]);
  });

  it("reports what a stream throws, before its first message and after it", async () => {
    for (const before of [[], [1]]) {
      const error = new Error("failed");
      const { ends, messages } = await stream(before, error);
      const taken = (async () => {
        for await (const _ of messages);
      })();
      await expect(taken).rejects.toBe(error);
      expect(ends).toEqual([{ error, abandoned: false }]);
    }
  });

  it("reports a stream that is abandoned, also when nothing of it was taken", async () => {
    const begun = await stream([1, 2]);
    for await (const _ of begun.messages) break;
    const untouched = await stream([1, 2]);
    await untouched.messages[Symbol.asyncIterator]().return?.();
    for (const { ends } of [begun, untouched]) expect(ends).toEqual([{ error: undefined, abandoned: true }]);
  });
});
