import { mkdirSync, rmSync, statSync } from "node:fs";
import { openClient, timeStartup } from "./client.mjs";
import { runBeside } from "./probe.mjs";
import { cpuSeconds, memory, peakMib, resetPeak } from "./process-stats.mjs";

const MIB = 1024 * 1024;

/**
 * Runs one case: a warm-up of every daemon, then rounds in which each has its turn. Resolves with the metrics of each round by
 * daemon; a daemon that lacks the operation has none.
 */
export async function measureCase(
  { id, kind, protocols, job, reference, probe, derive },
  allDaemons,
  { clientPath, files, load },
) {
  if (kind === "memory") {
    const daemons = allDaemons.filter(({ protocolFamily }) => protocolFamily !== "sdk");
    return Object.fromEntries(daemons.map((daemon) => [daemon.name, [memory(daemon.pids())]]));
  }
  const protocolOf = (daemon) => protocols[daemon.protocolFamily];
  const daemons = allDaemons.filter((daemon) => protocolOf(daemon) !== undefined);
  const rounds = Object.fromEntries(daemons.map(({ name }) => [name, []]));
  if (kind === "start-up") {
    for (let round = 0; round < load.rounds; round++)
      for (const daemon of daemons) rounds[daemon.name].push(await timeStartup(clientPath, daemon, protocolOf(daemon)));
    return rounds;
  }
  const clients = [];
  const open = (daemon) => {
    clients.push(openClient(clientPath, daemon, protocolOf(daemon)));
    return clients.at(-1);
  };
  try {
    const turns = daemons.map((daemon) => {
      const context = { load, files, clientPath, peer: daemon.name };
      const withKind = (make) => make && { kind, ...make(context) };
      const beside = probe && { client: open(daemon), job: { kind: "probe", ...probe(context) } };
      return { daemon, client: open(daemon), job: withKind(job), reference: withKind(reference), beside, derive };
    });
    const offered = [];
    for (const turn of turns) if (!(await takeTurn(turn)).notOffered) offered.push(turn);
    // Without picod there is nothing to compare.
    if (offered[0] !== turns[0]) return rounds;
    for (const { daemon } of offered) resetPeak(daemon.pids());
    for (let round = 0; round < load.rounds; round++)
      for (const turn of offered) rounds[turn.daemon.name].push(await takeTurn(turn));
    for (const { daemon } of offered) {
      const peak = peakMib(daemon.pids());
      for (const metrics of rounds[daemon.name]) metrics.peakMib = peak;
    }
    return rounds;
  } catch (error) {
    throw new Error(`${id}: ${error.message}`, { cause: error });
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function takeTurn({ daemon, client, job, reference, beside, derive }) {
  const plain = reference && (await runJob(daemon, client, reference));
  const metrics = await (beside === undefined
    ? runJob(daemon, client, job)
    : runBeside(beside, daemon, () => runJob(daemon, client, job)));
  return {
    ...metrics,
    ...(plain && { referencePerSecond: plain.perSecond, timesReference: plain.perSecond / metrics.perSecond }),
    ...derive?.(metrics),
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
