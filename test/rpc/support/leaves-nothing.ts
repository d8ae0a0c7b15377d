import { expect } from "vitest";
import { eventually } from "../../helpers/eventually.js";
import type { Daemon } from "../../helpers/start-daemon.js";
import { ask } from "./http1.js";

/** What a heap may grow by between two collections; what leaks grows by more. */
const RSS_GROWTH_BYTES = 40 * 1024 * 1024;

/**
 * Runs something twice, the first time to warm up, and checks that the daemon lives and that no descriptor, no child and no memory
 * is left behind.
 */
export async function leavesNothing(daemon: Daemon, run: () => Promise<void>): Promise<void> {
  const descriptors = daemon.descriptors();
  await run();
  const rss = daemon.rss();
  await run();
  await expect(ask(daemon, "/healthz")).resolves.toMatchObject({ status: 200 });
  await eventually("no child is left", () => daemon.children().length === 0);
  await eventually("all descriptors are closed", () => daemon.descriptors() <= descriptors);
  await eventually("memory is flat", () => daemon.rss() < rss + RSS_GROWTH_BYTES);
}
