import { cpuSeconds } from "../process-stats.mjs";
import { mean, median } from "../statistics.mjs";

/** The cost of the calls of a job, over all rounds: the median of the medians, and the CPU on average. */
export async function measureCalls({ daemon, client, rounds }, job) {
  // The first calls of a kind are slower.
  await client.run({ ...job, count: 1 });
  const measured = [];
  for (let round = 0; round < rounds; round++) {
    const before = cpuSeconds(daemon.pids()).own;
    const { p50Ms } = await client.run(typeof job.name === "string" ? { ...job, name: `${job.name}-${round}` } : job);
    measured.push({ p50Ms, cpuMicros: ((cpuSeconds(daemon.pids()).own - before) / job.count) * 1e6 });
  }
  return { p50Ms: median(measured.map(({ p50Ms }) => p50Ms)), cpuMicros: mean(measured.map(({ cpuMicros }) => cpuMicros)) };
}
