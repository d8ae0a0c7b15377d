import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startDaemon } from "../helpers/start-daemon.js";

/** V8 tidies up after the start. */
const SETTLE_MS = 20_000;
const WATCHED_MS = 60_000;

/** Time on a processor of all threads, from schedstat. */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

describe("an idle daemon", () => {
  it("takes less than a thousandth of a processor", async () => {
    await using daemon = await startDaemon();
    await sleep(SETTLE_MS);
    const before = cpuMs(daemon.pid);
    await sleep(WATCHED_MS);
    expect((cpuMs(daemon.pid) - before) / WATCHED_MS).toBeLessThan(0.001);
  });
});
