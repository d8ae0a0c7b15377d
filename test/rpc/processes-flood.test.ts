import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { startDaemon } from "../helpers/start-daemon.js";
import { selectId, startAndLeave } from "./support/processes.js";

const PROCESSES = Number(process.env.PICOD_FLOOD_PROCESSES ?? 100);
const DURATION_MS = Number(process.env.PICOD_FLOOD_MS ?? 3_000);
/** Kept output, 64 MiB of live processes and 64 MiB of ended ones, and what a daemon of so many processes needs besides. */
const MAX_RSS_BYTES = 320 * 1024 * 1024;
/** Among so many busy processes on a few processors. */
const MAX_P99_MS = 1_000;

describe("a flood of output", () => {
  it("is held to the budget and does not starve other calls", { timeout: DURATION_MS + 60_000 }, async () => {
    await using daemon = await startDaemon();
    await using clients = connectTo(daemon.url);
    const ids: string[] = [];
    for (let index = 0; index < PROCESSES; index++) ids.push(await startAndLeave(clients, { command: "exec yes" }));
    const latencies: number[] = [];
    let maxRss = 0;
    const until = performance.now() + DURATION_MS;
    while (performance.now() < until) {
      const startedAt = performance.now();
      await clients.filesystem.stat({ path: "/" });
      latencies.push(performance.now() - startedAt);
      maxRss = Math.max(maxRss, daemon.rss());
      await sleep(2);
    }
    const { processes } = await clients.process.listProcesses({});
    const written = processes.reduce((sum, { written }) => sum + Number(written?.stdout ?? 0), 0);
    const kept = processes.reduce((sum, one) => sum + Number((one.written?.stdout ?? 0n) - (one.keptFrom?.stdout ?? 0n)), 0);
    latencies.sort((a, b) => a - b);
    const p99 = latencies[Math.floor(latencies.length * 0.99)] ?? 0;
    const mib = (bytes: number) => Math.round(bytes / 1024 / 1024);
    process.stdout.write(
      `flood: ${PROCESSES} processes, ${mib(written)} MiB written, ${mib(kept)} MiB kept, RSS ${mib(maxRss)} MiB, Stat p50 ${latencies[latencies.length >> 1]?.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${latencies.at(-1)?.toFixed(1)} ms\n`,
    );
    expect(processes.filter((one) => one.written?.stdout === 0n)).toEqual([]);
    expect(kept).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(maxRss).toBeLessThan(MAX_RSS_BYTES);
    expect(p99).toBeLessThan(MAX_P99_MS);
    await Promise.all(ids.map((id) => clients.process.stopProcess({ ...selectId(id), grace: {} })));
  });
});
