import { expect } from "vitest";
import { eventually } from "../../helpers/eventually.js";
import type { Daemon } from "../../helpers/start-daemon.js";
import { ask } from "./http1.js";

/** What a heap may grow by between two collections; what leaks grows by more, and again each time. */
const RSS_GROWTH_BYTES = 40 * 1024 * 1024;
const RUNS = 3;

/**
 * Runs something once to warm up and again, and checks that the daemon lives and that no descriptor, no child and no memory is left
 * behind. A run that meets the heap at its smallest is followed by another: only a leak grows on.
 */
export async function leavesNothing(daemon: Daemon, run: () => Promise<void>): Promise<void> {
  const descriptors = daemon.descriptors();
  const growth: number[] = [];
  await run();
  do {
    const before = daemon.rss();
    await run();
    await expect(ask(daemon, "/healthz")).resolves.toMatchObject({ status: 200 });
    await eventually("no child is left", () => daemon.children().length === 0);
    await eventually("all descriptors are closed", () => daemon.descriptors() <= descriptors);
    growth.push(daemon.rss() - before);
  } while (growth.length < RUNS && Math.min(...growth) >= RSS_GROWTH_BYTES);
  expect(Math.min(...growth), `memory grew by ${growth.join(", ")} bytes`).toBeLessThan(RSS_GROWTH_BYTES);
}
