import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { mountedTmpfs } from "../helpers/mounted-tmpfs.js";
import { type Daemon, startDaemon } from "../helpers/start-daemon.js";

/** A million takes minutes. */
const ENTRIES = Number(process.env.PICOD_FLOOD_ENTRIES ?? 50_000);
/** The names themselves, and what a heap may grow by between two collections. */
const MAX_GROWTH_BYTES = 96 * 1024 * 1024;
/** On a few processors that others use too; and the one who asks also reads the listing. */
const MAX_P99_MS = 1_000;

interface Measured {
  readonly growth: number;
  readonly p99: number;
}

/** Runs something while another caller asks for something small all the time. */
async function measure(daemon: Daemon, what: string, run: () => Promise<unknown>): Promise<Measured> {
  await using other = connectTo(daemon.url);
  await other.filesystem.stat({ path: "/" });
  const before = daemon.rss();
  let most = before;
  const latencies: number[] = [];
  const startedAt = performance.now();
  let isDone = false;
  const done = run().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const askedAt = performance.now();
    await other.filesystem.stat({ path: "/" });
    latencies.push(performance.now() - askedAt);
    most = Math.max(most, daemon.rss());
    await sleep(2);
  }
  await done;
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? 0;
  const mib = (bytes: number) => Math.round(bytes / 1024 / 1024);
  process.stdout.write(
    `${what}: ${ENTRIES} entries in ${((performance.now() - startedAt) / 1000).toFixed(1)} s, RSS ${mib(before)} to ${mib(most)} MiB, Stat p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms, max ${at(1).toFixed(1)} ms\n`,
  );
  return { growth: most - before, p99: at(0.99) };
}

it("a directory with a flood of entries is listed and removed in flat memory, and others are answered", {
  timeout: 60_000 + ENTRIES,
}, async () => {
  using tmpfs = mountedTmpfs("nr_inodes=0");
  const path = `${tmpfs.path}/many`;
  mkdirSync(path);
  execFileSync("sh", ["-c", `cd "$1" && seq -f 'file-%07g' ${ENTRIES} | xargs touch`, "sh", path]);
  await using daemon = await startDaemon();
  await using clients = connectTo(daemon.url);
  const { filesystem } = clients;
  for await (const _ of filesystem.listDirectory({ path: "/etc" }));
  let count = 0;
  let last = "";
  const listed = await measure(daemon, "list", async () => {
    for await (const { entries } of filesystem.listDirectory({ path })) {
      for (const { name } of entries) {
        if (name <= last) expect.fail(`${name} after ${last}`);
        last = name;
      }
      count += entries.length;
    }
  });
  expect(count).toBe(ENTRIES);
  let removed = 0n;
  const removing = await measure(daemon, "remove", async () => {
    ({ removed } = await filesystem.remove({ path, recursive: true }));
  });
  expect(removed).toBe(BigInt(ENTRIES + 1));
  for (const { growth, p99 } of [listed, removing]) {
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    expect(p99).toBeLessThan(MAX_P99_MS);
  }
});
