// Lets many clients work on picod and then on sshd, each on a connection of its own, and prints a table: see --help.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { buildClient } from "./client.mjs";
import { describeMachine } from "./machine.mjs";
import { buildPicod, startPicod, TOKEN } from "./picod.mjs";
import { cpuSeconds, memory } from "./process-stats.mjs";
import { progress, runToEnd } from "./run-to-end.mjs";
import { startSshd } from "./sshd.mjs";

const run = promisify(execFile);
const MIB = 1024 * 1024;
/** What clients may take to finish what they have begun. */
const SPARE_MS = 300_000;
const SAMPLE_MS = 1_000;
const USAGE = `Usage: npm run bench:crowd -- [options]

Runs commands, uploads and downloads from many connections at once, on picod (gRPC) and then on sshd (sftp), with the same clients.

  --clients <n>     default 200
  --seconds <n>     for each daemon (default 60)
  --help

The environment variable PICOD_BIN names a built picod to measure instead of building this tree.
`;

await runToEnd(main);

async function main({ stack }) {
  const { values } = parseArgs({
    options: {
      clients: { type: "string", default: "200" },
      seconds: { type: "string", default: "60" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "picod-crowd-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  progress("building");
  const client = await buildClient(directory);
  const onDispose = (dispose) => stack.defer(dispose);
  const machine = await describeMachine();
  const picod = await startPicod("picod", process.env.PICOD_BIN ?? (await buildPicod(directory)), directory, onDispose);
  const sshd = await startSshd(directory, onDispose);
  const rows = [];
  for (const [daemon, protocol] of [
    [picod, "grpc"],
    [sshd, "ssh"],
  ]) {
    progress(daemon.name);
    rows.push(await measure(daemon, protocol, client, join(directory, `files-${daemon.name}`), values));
  }
  const { cpu, cores, kernel } = machine;
  process.stdout.write(
    `${values.clients} clients, ${values.seconds} s each; ${cpu}, ${cores} cores, ${kernel}\n\n${toMarkdown(rows)}`,
  );
}

async function measure(daemon, protocol, client, files, { clients, seconds }) {
  mkdirSync(files);
  const key = daemon.clientKey ?? "";
  const args = ["crowd", "-protocol", protocol, "-address", daemon.address, "-key", key, "-clients", clients];
  let residentMib = 0;
  const sample = () => {
    residentMib = Math.max(residentMib, memory(daemon.pids()).residentMib);
  };
  const sampling = setInterval(sample, SAMPLE_MS);
  const before = cpuSeconds(daemon.pids());
  try {
    const env = { PATH: process.env.PATH, PICOD_ACCESS_TOKEN: TOKEN };
    const timeout = Number(seconds) * 1000 + SPARE_MS;
    const { stdout } = await run(client, [...args, "-duration", `${seconds}s`, files], { env, timeout });
    const cpu = cpuSeconds(daemon.pids()).own - before.own;
    return { name: daemon.name, ...JSON.parse(stdout), residentMib, cpu, load: loadavg()[0] };
  } finally {
    clearInterval(sampling);
  }
}

function toMarkdown(rows) {
  const ms = (result) =>
    result === undefined ? "–" : `${result.p50Ms.toFixed(0)}, ${result.p99Ms.toFixed(0)}, ${result.maxMs.toFixed(0)}`;
  const count = ({ kinds }) => ["exec", "upload", "download"].reduce((sum, kind) => sum + (kinds[kind]?.count ?? 0), 0);
  const lines = rows.map((row) => {
    const { name, kinds, probe, bytes, errors, wrong, seconds, residentMib, load } = row;
    const failed = Object.values(errors).reduce((sum, each) => sum + each, 0);
    const work = `${count(row)} in ${seconds.toFixed(0)} s, ${(bytes / MIB).toFixed(0)} MiB`;
    const times = [kinds.exec, kinds.upload, kinds.download, probe].map(ms);
    return `| ${[name, work, ...times, `${wrong}, ${failed}`, `${residentMib.toFixed(0)} MiB`, load.toFixed(0)].join(" | ")} |\n`;
  });
  const head =
    "| | operations | exec p50, p99, max (ms) | upload | download | new connection | wrong, failed | resident at most | load average |\n";
  const failures = rows.flatMap(({ name, errors }) =>
    Object.entries(errors).map(([what, times]) => `${name}: ${times} × ${what}\n`),
  );
  return `${head}|---|---|---|---|---|---|---|---|---|\n${lines.join("")}${failures.join("")}`;
}
