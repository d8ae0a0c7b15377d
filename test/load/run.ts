import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Clients, connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import type { Daemon } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { ask } from "../rpc/support/http1.js";
import { selectId } from "../rpc/support/processes.js";
import { bundleProgram } from "../soak/bundle-program.js";
import { createRandom } from "../soak/jobs.js";
import { Fleet, type FleetOptions } from "./fleet.js";
import { KINDS } from "./messages.js";

export const SECONDS = Number(process.env.PICOD_LOAD_SECONDS ?? 600);
export const SEED = Number(process.env.PICOD_LOAD_SEED ?? Date.now() % 1_000_000);
/** As long as a fault lasts. */
export const FAULT_SECONDS = Math.min(15, Math.max(3, SECONDS / 10));
export const random = createRandom(SEED);
export const CLIENTS_BESIDE_FAULT = 20;
/** What a heap may have grown by between two collections. */
const RSS_GROWTH_BYTES = 64 * 1024 * 1024;
const SETTLE_MS = 30_000;
/** On a machine whose processors are shared. */
const ANSWER_MS = 1_000;

export interface Run {
  readonly daemon: Daemon;
  readonly clients: Clients;
  readonly fleet: Fleet;
}

export interface RunOptions extends Partial<FleetOptions> {
  /** These errors are what the fault is about. */
  readonly mayFail?: readonly string[];
  /** The fault has not been one if none of them was seen. */
  readonly mustFail?: boolean;
  /** Clients that die leave processes and pending uploads to whoever comes back: they are counted, and ended. */
  readonly leavesWork?: boolean;
  readonly maxGrowthBytes?: number;
}

const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(0);
const isZombie = (pid: number) => /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));

/**
 * Lets clients work while `fault` lasts, which returns what it has to say, and then checks that nothing is lost and nothing is left,
 * and prints a line of figures.
 */
export async function underLoad(
  title: string,
  daemon: Daemon,
  fault: (run: Run) => Promise<string>,
  { mayFail = [], mustFail = false, leavesWork = false, maxGrowthBytes = RSS_GROWTH_BYTES, ...options }: RunOptions = {},
): Promise<void> {
  using program = temporaryDirectory();
  using own = temporaryDirectory();
  const directory = options.directory ?? own.path;
  await using clients = connectTo(daemon.url);
  const script = await bundleProgram(`${import.meta.dirname}/clients.ts`, program);
  const common = { url: daemon.url, seed: SEED, clients: CLIENTS_BESIDE_FAULT, ...options, directory };
  const before = await warmUp(daemon, clients, script, common);

  const fleet = new Fleet(script, common);
  const startedAt = performance.now();
  const said = await fault({ daemon, clients, fleet });
  const healthMs = timed(() => ask(daemon, "/healthz"));
  const statMs = timed(() => clients.filesystem.stat({ path: "/" }));
  const [onNew, onOpen] = [await healthMs, await statMs];
  await fleet.end();
  const answerMs = await timed(() => ask(daemon, "/healthz"));
  const seconds = (performance.now() - startedAt) / 1000;

  const left = await endWork(clients);
  await eventually("no child is left", () => daemon.children().length === 0);
  await eventually(
    () => `descriptors: ${before.descriptors} → ${daemon.descriptors()}`,
    () => daemon.descriptors() <= before.descriptors + 1,
  );
  const rss = await settledRss(daemon, before.rss + maxGrowthBytes);
  const lost = fleet.lost();
  const rates = KINDS.map(
    (kind) => `${kind} ${fleet.times[kind].length} (p50 ${at(fleet.times[kind], 0.5)}, p99 ${at(fleet.times[kind], 0.99)} ms)`,
  );
  process.stdout.write(
    `${title}: seed ${SEED}, ${seconds.toFixed(0)} s; ${said}${said === "" ? "" : "; "}${rates.join(", ")}, ${mib(fleet.bytes)} MiB, ` +
      `${fleet.stored.size} files checked, lost ${lost.length}, wrong ${fleet.wrong.length}, errors ${JSON.stringify(fleet.errors)}; ` +
      `answers meanwhile in ${onOpen.toFixed(0)} ms (new connection ${onNew.toFixed(0)} ms), afterwards in ${answerMs.toFixed(0)} ms; descriptors ${before.descriptors} → ${daemon.descriptors()}, ` +
      `RSS ${mib(before.rss)} → ${mib(rss)} MiB (bound +${mib(maxGrowthBytes)}), left by clients ${JSON.stringify(left)}\n`,
  );
  expect(lost).toEqual([]);
  expect(fleet.wrong).toEqual([]);
  const unexpected = Object.keys(fleet.errors).filter((code) => !mayFail.includes(code));
  expect(unexpected.map((code) => `${code}: ${fleet.examples[code]}`)).toEqual([]);
  if (mustFail) expect(Object.keys(fleet.errors)).not.toEqual([]);
  expect(fleet.operations).toBeGreaterThan(0);
  if (!leavesWork) expect(left).toEqual({ processes: 0, uploads: 0 });
  expect(daemon.children().filter(isZombie)).toEqual([]);
  expect(answerMs).toBeLessThan(ANSWER_MS);
  expect(rss - before.rss).toBeLessThan(maxGrowthBytes);
  expect(await clients.process.execute({ command: "echo alive" })).toMatchObject({ stdout: "alive\n", exitCode: 0 });
}

/** A heap that has not been used yet grows by itself. Returns what the daemon has when nobody but `clients` is connected. */
async function warmUp(daemon: Daemon, clients: Clients, script: string, options: FleetOptions) {
  await clients.process.execute({ command: "true" });
  const descriptors = daemon.descriptors();
  using directory = temporaryDirectory();
  const fleet = new Fleet(script, { ...options, directory: directory.path });
  await sleep(FAULT_SECONDS * 1000);
  await fleet.end();
  expect(fleet.errors, JSON.stringify(fleet.examples)).toEqual({});
  await eventually("the connections are closed", () => daemon.descriptors() <= descriptors + 1);
  return { rss: daemon.rss(), descriptors };
}

/** Ends what clients that have died have left, and says how much it was. */
async function endWork({ process, filesystem }: Clients): Promise<{ processes: number; uploads: number }> {
  const { processes } = await process.listProcesses({});
  for (const { id } of processes) {
    await process.stopProcess(selectId(id));
    await process.deleteProcess(selectId(id));
  }
  const { uploads } = await filesystem.listUploads({});
  for (const { uploadId } of uploads) await filesystem.abortUpload({ uploadId });
  return { processes: processes.length, uploads: uploads.length };
}

/** What it is down to within some time: garbage is collected when there is reason to. */
async function settledRss(daemon: Daemon, bound: number): Promise<number> {
  const until = performance.now() + SETTLE_MS;
  let least = daemon.rss();
  while (least > bound && performance.now() < until) {
    await ask(daemon, "/healthz");
    await sleep(100);
    least = Math.min(least, daemon.rss());
  }
  return least;
}

export async function timed(what: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await what();
  return performance.now() - startedAt;
}

/** The time that such a share of them stays below, in whole milliseconds; sorts them. */
export function at(times: number[], quantile: number): string {
  times.sort((a, b) => a - b);
  return (times[Math.min(times.length - 1, Math.floor(times.length * quantile))] ?? 0).toFixed(0);
}
