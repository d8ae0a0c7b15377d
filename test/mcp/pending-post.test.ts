import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PendingPost } from "../../src/api/mcp/http/pending-post.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const request = { jsonrpc: "2.0", id: 1, method: "tools/call" };

describe("the requests of a connection that is lost", () => {
  it("are given up at once by a client that cannot come back", () => {
    const onOver = vi.fn();
    const post = new PendingPost(request, { onCancelled: vi.fn(), onOver });
    post.connectionLost();
    expect(post.abortSignal.aborted).toBe(true);
    expect(onOver).toHaveBeenCalledOnce();
  });

  it("are given up when the client has not come back for half a minute", () => {
    const onOver = vi.fn();
    const post = new PendingPost([request, { jsonrpc: "2.0", method: "notifications/initialized" }], {
      onCancelled: vi.fn(),
      onOver,
    });
    post.streamId = "stream";
    post.connectionLost();
    vi.advanceTimersByTime(29_000);
    post.resumed();
    vi.advanceTimersByTime(60_000);
    expect(post.abortSignal.aborted).toBe(false);
    post.connectionLost();
    vi.advanceTimersByTime(29_000);
    expect([post.abortSignal.aborted, post.isAnswered]).toEqual([false, false]);
    post.answered(1);
    expect(post.isAnswered).toBe(true);
    vi.advanceTimersByTime(1_000);
    expect(post.abortSignal.aborted).toBe(true);
    expect(onOver).toHaveBeenCalledOnce();
  });
});
