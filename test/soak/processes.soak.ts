import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { connectTo } from "../helpers/clients.js";
import { eventually } from "../helpers/eventually.js";
import { startDaemon, TOKEN } from "../helpers/start-daemon.js";
import { temporaryDirectory } from "../helpers/temporary-directory.js";
import { bundleProgram } from "./bundle-program.js";
import { startCuttingProxy } from "./cutting-proxy.js";
import { createJob, createRandom, type Job, type JobResult } from "./jobs.js";

const SECONDS = Number(process.env.PICOD_SOAK_SECONDS ?? 60);
const SEED = Number(process.env.PICOD_SOAK_SEED ?? Date.now() % 1_000_000);
const READERS = 3;
const JOBS_OF_READER = 5;
const RSS_GROWTH_BYTES = 64 * 1024 * 1024;

/** A reader process and the jobs that it has not answered; killed, it is replaced by another that begins them again. */
class Reader {
  readonly jobs = new Map<string, Job>();
  kills = 0;
  #child: ChildProcess;
  readonly #script: string;
  readonly #url: string;
  readonly #onResult: (job: Job, result: JobResult & { error?: string }) => void;

  constructor(script: string, url: string, onResult: (job: Job, result: JobResult & { error?: string }) => void) {
    this.#script = script;
    this.#url = url;
    this.#onResult = onResult;
    this.#child = this.#spawn();
  }

  take(job: Job): void {
    this.jobs.set(job.id, job);
    this.#child.stdin?.write(`${JSON.stringify(job)}\n`);
  }

  killAndReplace(): void {
    this.kills++;
    this.#child.kill("SIGKILL");
    this.#child = this.#spawn();
    for (const job of this.jobs.values()) this.#child.stdin?.write(`${JSON.stringify(job)}\n`);
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }

  #spawn(): ChildProcess {
    const child = spawn(process.execPath, [this.#script, this.#url, TOKEN], { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => undefined);
    createInterface(child.stdout).on("line", (line) => {
      if (child !== this.#child) return;
      const result = JSON.parse(line);
      const job = this.jobs.get(result.id);
      this.jobs.delete(result.id);
      if (job !== undefined) this.#onResult(job, result);
    });
    return child;
  }
}

const isZombie = (pid: number) => /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));

it("loses and repeats nothing while connections are cut and clients are killed", async () => {
  const random = createRandom(SEED);
  using directory = temporaryDirectory();
  const script = await bundleProgram(`${import.meta.dirname}/reader.ts`, directory);
  await using daemon = await startDaemon({ args: ["--kill-grace", "300ms"] });
  await using clients = connectTo(daemon.url);
  using proxy = await startCuttingProxy(daemon.port, random);
  await clients.process.execute({ command: "true" });
  const descriptors = daemon.descriptors();
  let rssAtStart = 0;

  const wrong: string[] = [];
  const done: Record<string, number> = {};
  let bytes = 0;
  let number = 0;
  const byId = (id: string) => ({ process: { selector: { case: "id" as const, value: id } } });
  const onResult = (job: Job, result: JobResult & { error?: string }) => {
    done[job.reason] = (done[job.reason] ?? 0) + 1;
    bytes += result.bytes ?? 0;
    const isRight =
      result.error === undefined &&
      result.trimmed === 0 &&
      result.reason === job.reason &&
      (job.sha256 === undefined || result.sha256 === job.sha256);
    if (!isRight) wrong.push(`${JSON.stringify(job)} → ${JSON.stringify(result)}`);
    void clients.process.deleteProcess(byId(job.id)).catch((error) => wrong.push(`delete ${job.id}: ${error}`));
  };
  const readers = Array.from({ length: READERS }, () => new Reader(script, `http://127.0.0.1:${proxy.port}`, onResult));
  const running = () => readers.reduce((sum, reader) => sum + reader.jobs.size, 0);

  /** Once it says that it is up: a signal sent earlier would find a shell that has not set its traps. */
  const act = async ({ id, act }: Job) => {
    if (act === undefined) return;
    await eventually(`${id} is up`, async () => {
      const { process } = await clients.process.getProcess(byId(id)).catch(() => ({ process: undefined }));
      return (process?.written?.stdout ?? 0n) > 0n;
    });
    await sleep(random(200));
    if ("signal" in act) await clients.process.sendSignal({ ...byId(id), signal: act.signal });
    else await clients.process.stopProcess(byId(id));
  };

  const until = performance.now() + SECONDS * 1000;
  let lastKill = performance.now();
  while (performance.now() < until) {
    // A heap that has not been used yet grows by itself.
    if (rssAtStart === 0 && performance.now() > until - SECONDS * 750) rssAtStart = daemon.rss();
    for (const reader of readers) {
      if (reader.jobs.size >= JOBS_OF_READER) continue;
      const job = createJob(`soak-${SEED}-${number++}`, random);
      reader.take(job);
      void act(job).catch((error) => wrong.push(`${job.id}: ${error}`));
    }
    if (performance.now() - lastKill > 3_000) {
      lastKill = performance.now();
      readers[random(READERS)]?.killAndReplace();
    }
    await sleep(10);
  }
  const giveUpAt = performance.now() + 60_000;
  while (running() > 0 && performance.now() < giveUpAt) await sleep(50);
  const left = readers.flatMap((reader) => [...reader.jobs.keys()]);
  for (const reader of readers) reader.end();

  await eventually("no child is left", () => daemon.children().length === 0);
  await eventually("descriptors are closed", () => daemon.descriptors() <= descriptors + 1);
  const kills = readers.reduce((sum, reader) => sum + reader.kills, 0);
  const mib = (value: number) => (value / 1024 / 1024).toFixed(0);
  process.stdout.write(
    `soak: seed ${SEED}, ${SECONDS} s, ${number} processes ${JSON.stringify(done)}, ${mib(bytes)} MiB, ${proxy.cuts} cuts, ${kills} kills, RSS ${mib(rssAtStart)} → ${mib(daemon.rss())} MiB, descriptors ${descriptors} → ${daemon.descriptors()}, wrong ${wrong.length}, left ${left.length}\n`,
  );
  expect(wrong).toEqual([]);
  expect(left).toEqual([]);
  expect(daemon.children().filter(isZombie)).toEqual([]);
  expect((await clients.process.listProcesses({})).processes).toEqual([]);
  expect(daemon.rss() - rssAtStart).toBeLessThan(RSS_GROWTH_BYTES);
});
