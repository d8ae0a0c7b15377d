import { mkdirSync, rmSync, statSync } from "node:fs";
import { runBeside } from "./probe.mjs";
import { cpuSeconds } from "./process-stats.mjs";

const MIB = 1024 * 1024;

/** What one daemon does in one round: its reference, its job, and the probe beside that. */
export async function takeTurn({ daemon, client, job, reference, beside, derive }) {
  const plain = reference && (await runJob(daemon, client, reference));
  const metrics = await (beside === undefined
    ? runJob(daemon, client, job)
    : runBeside(beside, daemon, () => runJob(daemon, client, job)));
  return {
    ...metrics,
    ...(plain && { referencePerSecond: plain.perSecond, timesReference: plain.perSecond / metrics.perSecond }),
    ...derive(metrics),
  };
}

async function runJob(daemon, client, job) {
  if (job.kind === "write") prepareDirectory(job.path);
  const before = cpuSeconds(daemon.pids());
  const result = await client.run(job);
  const after = cpuSeconds(daemon.pids());
  if (job.kind === "upload" && !result.notOffered) takeUploads(job);
  const own = (after.own - before.own) / job.count;
  const children = (after.children - before.children) / job.count;
  return {
    ...result,
    perSecond: job.count / result.seconds,
    ...(job.size === undefined ? {} : { mibPerSecond: (job.count * job.size) / MIB / result.seconds }),
    slowestOverFastest: result.maxMs / result.minMs,
    cpuMicros: own * 1e6,
    cpuMillis: own * job.count * 1e3,
    cpuWithChildrenMicros: (own + children) * 1e6,
  };
}

function prepareDirectory(path) {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path);
}

/** Removed at once, so that the kernel never begins to write it to the disk. */
function takeUploads({ path, size, count }) {
  for (let index = 0; index < count; index++) {
    const each = count === 1 ? path : `${path}-${index}`;
    const found = statSync(each).size;
    if (found !== size) throw new Error(`${each} has ${found} bytes instead of ${size}`);
    rmSync(each);
  }
}
