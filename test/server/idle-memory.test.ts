import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon } from "../helpers/start-daemon.js";

const CALLS = 100;
const OUTPUT_BYTES = 256 * 1024;
/** It waits for 10 quiet seconds in a row. */
const CEILING_MS = 40_000;
const MIB = 1024 * 1024;

describe("a daemon that nobody calls any longer", () => {
  it("gives back the memory that its calls took", async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const command = `head -c ${OUTPUT_BYTES} /dev/zero | tr '\\0' x`;
    const execute = () => clients.process.execute({ command, maxOutputBytes: BigInt(OUTPUT_BYTES) });
    const { stdout } = await execute();
    expect(stdout).toHaveLength(OUTPUT_BYTES);
    const before = daemon.rss();
    await Promise.all(Array.from({ length: CALLS }, execute));
    const after = daemon.rss();
    expect(after - before).toBeGreaterThan(16 * MIB);
    await eventually(
      () => `${Math.round(daemon.rss() / MIB)} MiB are still resident of ${Math.round(after / MIB)}`,
      () => daemon.rss() < after - 12 * MIB,
      CEILING_MS,
    );
  }, 60_000);

  it("does not need a descriptor to find out how much that is", async () => {
    await using daemon = await startDaemon();
    const limit = (count: number) => execFileSync("prlimit", [`--pid=${daemon.pid}`, `--nofile=${count}:20000`]);
    limit(3);
    // It looks a second after its start.
    const hasLookedAt = performance.now() + 3_000;
    await eventually("it has looked", () => performance.now() > hasLookedAt);
    limit(20_000);
    await using clients = connectTo(daemon.url);
    expect(await clients.filesystem.stat({ path: "/" })).toBeDefined();
  });
});
