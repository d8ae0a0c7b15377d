import { openClient, timeStartup } from "./client.mjs";
import { memory, peakMib, resetPeak } from "./process-stats.mjs";
import { runTool } from "./tool.mjs";
import { takeTurn } from "./turn.mjs";

/**
 * Runs one case: rounds in which each daemon has its turn, after a warm-up. Resolves with the metrics of each round by
 * daemon; a daemon that lacks the operation has none.
 */
export async function measureCase(each, allDaemons, context) {
  const { load } = context;
  if (each.kind === "memory") {
    const daemons = allDaemons.filter(({ protocolFamily }) => protocolFamily !== "sdk");
    return Object.fromEntries(daemons.map((daemon) => [daemon.name, [memory(daemon.pids())]]));
  }
  const daemons = allDaemons.filter((daemon) => protocolOf(each, daemon) !== undefined);
  const rounds = Object.fromEntries(daemons.map(({ name }) => [name, []]));
  try {
    if (each.kind === "start-up" || each.kind === "tool") {
      const measure = each.kind === "tool" ? runTool : startUp;
      for (let round = 0; round < load.rounds; round++)
        for (const daemon of daemons) rounds[daemon.name].push(await measure(each, daemon, context));
    } else {
      await measureJobs(each, daemons, context, rounds);
    }
  } catch (error) {
    throw new Error(`${each.id}: ${error.message}`, { cause: error });
  }
  return rounds;
}

function startUp(each, daemon, { clientPath }) {
  return timeStartup(clientPath, daemon, protocolOf(each, daemon));
}

async function measureJobs(each, daemons, context, rounds) {
  const clients = [];
  const open = (daemon) => {
    clients.push(openClient(context.clientPath, daemon, protocolOf(each, daemon)));
    return clients.at(-1);
  };
  try {
    const turns = daemons.map((daemon) => prepareTurn(each, daemon, { ...context, peer: daemon.name }, open));
    const offered = [];
    const first = [];
    for (const turn of turns) {
      const metrics = await takeTurn(turn);
      if (metrics.notOffered) continue;
      offered.push(turn);
      first.push(metrics);
    }
    // Without picod there is nothing to compare.
    if (offered[0] !== turns[0]) return;
    const { warmUp } = context.load;
    if (warmUp) for (const { daemon } of offered) resetPeak(daemon.pids());
    else for (const [index, { daemon }] of offered.entries()) rounds[daemon.name].push(first[index]);
    for (let round = warmUp ? 0 : 1; round < context.load.rounds; round++)
      for (const turn of offered) rounds[turn.daemon.name].push(await takeTurn(turn));
    for (const { daemon } of offered) {
      const peak = peakMib(daemon.pids());
      for (const metrics of rounds[daemon.name]) metrics.peakMib = peak;
    }
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

function prepareTurn({ kind, job, reference, probe, derive }, daemon, context, open) {
  return {
    daemon,
    client: open(daemon),
    job: { kind, ...job(context) },
    reference: reference && { kind, ...reference(context) },
    beside: probe && { client: open(daemon), job: { kind: "probe", ...probe(context) } },
    derive: (metrics) => derive?.(metrics, context),
  };
}

function protocolOf({ protocols }, { protocolFamily }) {
  return protocols[protocolFamily];
}
