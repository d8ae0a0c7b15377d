import { afterEach, expect, it, vi } from "vitest";
import type { DirectoryWatchEvent } from "../../src/filesystem/watching/directory-watch.js";
import { WaitingEvents } from "../../src/filesystem/watching/waiting-events.js";

const LIMIT = 50_000;

function change(path: string, kind: "created" | "modified" = "created"): DirectoryWatchEvent {
  return { kind: "change", change: { kind, path, fromPath: undefined, isDirectory: false, timeMs: 0 } };
}

afterEach(() => {
  vi.useRealTimers();
});

it("keeps so many for a slow taker, says that the rest was lost, and goes on", () => {
  const waiting = new WaitingEvents("/watched");
  for (let number = 0; number < LIMIT + 10; number++) waiting.push(change(String(number)));
  const taken = Array.from({ length: LIMIT }, () => waiting.take());
  expect([taken[0], taken.at(-1)]).toEqual([change("0"), change(String(LIMIT - 1))]);
  waiting.push(change("lost as well"));
  expect([waiting.take(), waiting.take(), waiting.isEmpty]).toEqual([{ kind: "overflow" }, undefined, true]);
  waiting.push(change("later"));
  waiting.push({ kind: "ended", message: "gone" });
  expect([waiting.take(), waiting.take()]).toEqual([change("later"), { kind: "ended", message: "gone" }]);
  waiting.close();
});

it("gives up on a taker that stays behind", () => {
  vi.useFakeTimers();
  const waiting = new WaitingEvents("/watched");
  const givenUp = vi.fn();
  waiting.onGivenUp = givenUp;
  for (let number = 0; number <= LIMIT; number++) waiting.push(change(String(number)));
  waiting.take();
  vi.advanceTimersByTime(59_000);
  expect(givenUp).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2_000);
  expect(givenUp).toHaveBeenCalledOnce();
  expect(waiting.take()).toMatchObject({ kind: "failed", error: { reason: "WATCHER_TOO_SLOW" } });
});

it("says the same of one path once", () => {
  const waiting = new WaitingEvents("/watched");
  for (const path of ["a", "a", "b", "a"]) waiting.push(change(path, "modified"));
  expect([waiting.take(), waiting.take(), waiting.take(), waiting.take()]).toEqual([
    change("a", "modified"),
    change("b", "modified"),
    change("a", "modified"),
    undefined,
  ]);
});
