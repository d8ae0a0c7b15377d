// node packaging/measure.mjs [--rounds N] PROGRAM...: how long each takes from its start to its first answer, and what it holds when
// idle, as a Markdown table. Every program has its turn in every round; figures are medians, in brackets the smallest.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const IDLE_MS = 1_000;

const { values, positionals } = parseArgs({ options: { rounds: { type: "string", default: "15" } }, allowPositionals: true });
const results = new Map(positionals.map((program) => [program, []]));
for (let round = 0; round < Number(values.rounds); round++) {
  for (const program of positionals) results.get(program).push(await measure(program));
}
process.stdout.write(
  "| program | first answer, ms | CPU until then, ms | resident, MiB | anonymous | shared memory |\n|---|---|---|---|---|---|\n",
);
for (const [program, runs] of results) {
  const cells = ["startMs", "cpuMs", "VmRSS", "RssAnon", "RssShmem"].map((field) => {
    const sorted = runs.map((run) => run[field]).sort((a, b) => a - b);
    return `${sorted[sorted.length >> 1].toFixed(0)} (${sorted[0].toFixed(0)})`;
  });
  process.stdout.write(`| ${program} | ${cells.join(" | ")} |\n`);
}

async function measure(program) {
  const startedAt = performance.now();
  const env = { PATH: process.env.PATH, PICOD_ACCESS_TOKEN: "measure-token" };
  const daemon = spawn(program, ["--host", "127.0.0.1", "--port", "0"], { env, stdio: ["ignore", "pipe", "inherit"] });
  try {
    for await (const line of createInterface(daemon.stdout)) {
      const { msg, port } = JSON.parse(line);
      if (msg !== "server listening") continue;
      await firstAnswer(port);
      break;
    }
    const startMs = performance.now() - startedAt;
    const cpuMs = cpuOf(daemon.pid);
    await sleep(IDLE_MS);
    return { startMs, cpuMs, ...memoryOf(daemon.pid) };
  } finally {
    const exited = once(daemon, "exit");
    daemon.kill("SIGKILL");
    await exited;
  }
}

async function firstAnswer(port) {
  const [response] = await once(get({ host: "127.0.0.1", port, path: "/healthz", agent: false }), "response");
  response.resume();
  await once(response, "end");
}

/** Of all threads that there are, /proc/<pid>/schedstat: more exact than the ticks of proc_pid_stat(5). */
function cpuOf(pid) {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) => {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]);
  });
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1e6;
}

function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const mebibytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return Object.fromEntries(["VmRSS", "RssAnon", "RssShmem"].map((name) => [name, mebibytes(name)]));
}
