// A client process of the soak, which may be killed at any moment: takes jobs from standard input, one a line, and answers each
// with its result when its process has ended.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, Outcome_Reason } from "../../src/client/index.js";
import type { Job, JobResult } from "./jobs.js";

const [url = "", token = ""] = process.argv.slice(2);
const client = createClient({ url, token });
const selector = (id: string) => ({ process: { selector: { case: "id" as const, value: id } } });

/** Connections are cut on purpose: what is safe to repeat is repeated. */
async function insistently<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === 50) throw error;
      await sleep(50);
    }
  }
}

async function run(job: Job): Promise<JobResult> {
  const started = await client.start(job.command, {
    id: job.id,
    timeout: job.timeout,
    stdin: job.input !== undefined,
    ...(job.pty ? { pty: { cols: 80, rows: 24 } } : {}),
  });
  const typing = type(job, started);
  const hash = createHash("sha256");
  let bytes = 0;
  let trimmed = 0;
  for await (const chunk of started) {
    if (!("data" in chunk)) {
      trimmed++;
      continue;
    }
    hash.update(chunk.data);
    bytes += chunk.data.length;
  }
  await typing;
  const { outcome } = await started.wait();
  return { id: job.id, bytes, trimmed, sha256: hash.digest("hex"), reason: Outcome_Reason[outcome?.reason ?? 0] ?? "" };
}

async function type(job: Job, started: Awaited<ReturnType<typeof client.start>>): Promise<void> {
  if (job.input === undefined) return;
  const { process } = await insistently(() => client.process.getProcess(selector(job.id)));
  // A reader before this one may have typed a part, or all.
  const rest = Buffer.from(job.input).subarray(Number(process?.inputBytes));
  // By offsets, since what that one has sent may still be on its way.
  for (let at = Buffer.byteLength(job.input) - rest.length; at < job.input.length; at += 5_000) {
    const data = Buffer.from(job.input).subarray(at, at + 5_000);
    await insistently(() => client.process.sendInput({ ...selector(job.id), data, offset: BigInt(at) }));
  }
  await insistently(() => started.closeInput());
}

createInterface(process.stdin).on("line", (line) => {
  const job = JSON.parse(line) as Job;
  run(job).then(
    (result) => process.stdout.write(`${JSON.stringify(result)}\n`),
    (error: Error) => process.stdout.write(`${JSON.stringify({ id: job.id, error: error.stack })}\n`),
  );
});
