import { eventLoopDelay } from "./event-loop-delay.mjs";

/** Runs a job while another client makes one small call after the other, and adds what that saw and what picod says of its event loop. */
export async function runBeside({ client, job }, daemon, runJob) {
  const before = await eventLoopDelay(daemon);
  const probing = client.run(job);
  // Of a job that fails the error counts.
  probing.catch(() => undefined);
  const metrics = await runJob().finally(() => client.tell({ kind: "stop" }));
  const { p50Ms, p99Ms, maxMs } = await probing;
  const during = await eventLoopDelay(daemon);
  const probe = { probeP50Ms: p50Ms, probeP99Ms: p99Ms, probeMaxMs: maxMs };
  return { ...metrics, ...probe, loopDelayBeforeMs: before?.maxMs, loopDelayMs: during?.maxMs };
}
