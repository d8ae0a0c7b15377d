import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Outcome_Reason, type PicodClient, type StartedProcess } from "../../src/client/index.js";
import type { Job, JobResult } from "./jobs.js";

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

/**
 * Starts the process of a job, or finds the one that was started, and follows it to its end. `mayLeave` is asked at every piece of output
 * whether the follower goes away and comes back.
 */
export async function runJob(client: PicodClient, job: Job, mayLeave: () => boolean = () => false): Promise<JobResult> {
  const started = await client.start(job.command, {
    id: job.id,
    timeout: job.timeout,
    stdin: job.input !== undefined,
    ...(job.pty ? { pty: { cols: 80, rows: 24 } } : {}),
  });
  const typing = type(client, job, started);
  const hash = createHash("sha256");
  let bytes = 0;
  let trimmed = 0;
  for (let left = true; left; ) {
    left = false;
    for await (const chunk of started) {
      if ("data" in chunk) {
        hash.update(chunk.data);
        bytes += chunk.data.length;
      } else trimmed++;
      left = mayLeave();
      if (left) break;
    }
  }
  await typing;
  const { outcome } = await started.wait();
  return { id: job.id, bytes, trimmed, sha256: hash.digest("hex"), reason: Outcome_Reason[outcome?.reason ?? 0] ?? "" };
}

async function type(client: PicodClient, job: Job, started: StartedProcess): Promise<void> {
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
